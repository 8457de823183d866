// SPDX-License-Identifier: Apache-2.0
// The equitable partition of clusters: how long folding may take before it saves anything.
#include <benchmark/benchmark.h>

#include <vector>

#include "bench_main.h"
#include "predict/equitable_partition.h"

namespace stepcast {
namespace {

struct Edge {
  std::int32_t a;
  std::int32_t b;
  std::uint64_t label;
};

WeightedGraph graph_of(std::vector<std::uint64_t> colour, const std::vector<Edge>& edges) {
  WeightedGraph graph;
  graph.begin.assign(colour.size() + 1, 0);
  graph.colour = std::move(colour);
  for (const Edge& edge : edges) {
    ++graph.begin[static_cast<std::size_t>(edge.a) + 1];
    ++graph.begin[static_cast<std::size_t>(edge.b) + 1];
  }
  for (std::size_t v = 1; v < graph.begin.size(); ++v) graph.begin[v] += graph.begin[v - 1];
  std::vector<std::int32_t> next(graph.begin.begin(), graph.begin.end() - 1);
  graph.neighbour.resize(2 * edges.size());
  graph.label.resize(2 * edges.size());
  const auto put = [&](std::int32_t from, std::int32_t to, std::uint64_t label) {
    const auto slot = static_cast<std::size_t>(next[static_cast<std::size_t>(from)]++);
    graph.neighbour[slot] = to;
    graph.label[slot] = label;
  };
  for (const Edge& edge : edges) {
    put(edge.a, edge.b, edge.label);
    put(edge.b, edge.a, edge.label);
  }
  return graph;
}

// Ranks in groups along four dimensions of sizes 8, 8, 16 and the rest, as TP, PP, DP and rails
// are; `slow_ranks` of them have a colour of their own, which breaks the symmetry around them.
WeightedGraph rank_grid(std::int32_t ranks, std::int32_t slow_ranks) {
  const std::int32_t extents[] = {8, 8, 16, ranks / 1024};
  std::vector<std::uint64_t> colour(static_cast<std::size_t>(ranks), 0);
  std::vector<Edge> edges;
  std::int32_t stride = 1;
  for (const std::int32_t extent : extents) {
    const auto base = static_cast<std::int32_t>(colour.size());
    const auto label = static_cast<std::uint64_t>(stride);
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      const std::int32_t group = rank / (stride * extent) * stride + rank % stride;
      edges.push_back({rank, base + group, label});
    }
    colour.resize(colour.size() + static_cast<std::size_t>(ranks / extent), label);
    stride *= extent;
  }
  for (std::int32_t s = 0; s < slow_ranks; ++s) {
    colour[static_cast<std::size_t>(s) * 997 % static_cast<std::size_t>(ranks)] = 77;
  }
  return graph_of(std::move(colour), edges);
}

void BM_EquitablePartition(benchmark::State& state) {
  const WeightedGraph graph = rank_grid(static_cast<std::int32_t>(state.range(0)),
                                        static_cast<std::int32_t>(state.range(1)));
  for (auto _ : state) benchmark::DoNotOptimize(equitable_partition(graph));
  state.counters["vertices"] = static_cast<double>(graph.colour.size());
  state.counters["edges"] = static_cast<double>(graph.neighbour.size()) / 2;
}
BENCHMARK(BM_EquitablePartition)
    ->Args({16'384, 0})
    ->Args({131'072, 0})
    ->Args({131'072, 1})
    ->Args({131'072, 1000})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stepcast

int main(int argc, char** argv) { return stepcast::run_benchmarks(argc, argv); }
