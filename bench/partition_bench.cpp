// SPDX-License-Identifier: Apache-2.0
// The equitable partition of clusters: how long folding may take before it saves anything.
#include <benchmark/benchmark.h>

#include <vector>

#include "bench_main.h"
#include "predict/equitable_partition.h"

namespace stepcast {
namespace {

// Ranks in groups along four dimensions of sizes 8, 8, 16 and the rest, as TP, PP, DP and rails
// are; `slow_ranks` of them have a colour of their own, which breaks the symmetry around them.
WeightedGraph rank_grid(std::int32_t ranks, std::int32_t slow_ranks) {
  const std::int32_t extents[] = {8, 8, 16, ranks / 1024};
  std::vector<std::uint64_t> colour(static_cast<std::size_t>(ranks), 0);
  std::vector<LabelledEdge> edges;
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
  return weighted_graph(std::move(colour), edges);
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
