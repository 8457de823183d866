// SPDX-License-Identifier: Apache-2.0
// A graph of many ranks, matched, built and replayed: the step of a GPT-3 with 175 billion
// parameters (tests/replay/w1_workload.h), which bench_network has on the engine's own interface.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "bench_main.h"
#include "graphs/chakra_reader.h"
#include "graphs/chakra_writer.h"
#include "graphs/goal_reader.h"
#include "replay/dimension_network.h"
#include "replay/graph_replay.h"
#include "replay/w1_workload.h"

namespace stepcast::testing {
namespace {

std::unique_ptr<GraphNetwork> network_of(const W1& spec) {
  return dimension_network(
      {"w1",
       {{DimensionForm::kSwitch, W1::kTp, BytesPerSecond(W1::kNear), Seconds(W1::kNearLatency / 2)},
        {DimensionForm::kSwitch, spec.ranks / W1::kTp, BytesPerSecond(W1::kFar),
         Seconds(W1::kFarLatency / 2)}}},
      {});
}

W1 spec_of(const benchmark::State& state) {
  return {.ranks = static_cast<std::int32_t>(state.range(0)),
          .layers = static_cast<std::int32_t>(state.range(1)),
          .micro_batches = static_cast<std::int32_t>(state.range(2))};
}

void count(benchmark::State& state, const ExecutionGraph& graph, double step_s) {
  state.counters["nodes"] = static_cast<double>(graph.nodes());
  state.counters["step_s"] = step_s;
}

// Read from the texts that its files hold, then replayed.
void BM_W1AsChakra(benchmark::State& state) {
  const W1 spec = spec_of(state);
  std::vector<std::string> texts;
  ChakraRules rules;
  {
    const ExecutionGraph made = graph_of(spec);
    for (std::int32_t r = 0; r < spec.ranks; ++r) texts.push_back(chakra_text(made, r));
    for (std::size_t g = 0; g < made.groups.size(); ++g) {
      rules.groups[std::to_string(g + 1)] = made.groups[g];
    }
  }
  for (auto _ : state) {
    const auto graph = chakra_of(texts, rules);
    if (!graph) return state.SkipWithError("W1 is no trace");
    const auto out = replay_graph(*graph, *network_of(spec), {});
    if (!out) return state.SkipWithError("W1 did not end");
    count(state, *graph, out->time.value());
  }
}

void BM_W1AsGoal(benchmark::State& state) {
  const W1 spec = spec_of(state);
  const std::string text = goal_text(spec);
  for (auto _ : state) {
    const auto graph = goal_of(text, "w1.goal");
    if (!graph) return state.SkipWithError("W1 is no schedule");
    const auto out = replay_graph(*graph, *network_of(spec), {});
    if (!out) return state.SkipWithError("W1 did not end");
    count(state, *graph, out->time.value());
  }
  state.counters["bytes"] = static_cast<double>(text.size());
}

// Ranks, layers, micro-batches. In GOAL every ring is single messages, so it is cut to fit.
BENCHMARK(BM_W1AsChakra)->Args({128, 96, 24})->Args({1024, 96, 24})->Unit(benchmark::kMillisecond);
BENCHMARK(BM_W1AsGoal)->Args({128, 96, 24})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stepcast::testing

int main(int argc, char** argv) { return stepcast::run_benchmarks(argc, argv); }
