// SPDX-License-Identifier: Apache-2.0
// A whole forecast and its parts: GPT-3 175B on 1,024 GPUs, Llama-3.1-405B on 16,384, and a deep
// interleaved pipeline, whose replay is the largest of all published cases.
#include <benchmark/benchmark.h>

#include <string>

#include "bench_main.h"
#include "core/json.h"
#include "layout/data_folders.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "predict/prediction.h"
#include "predict/symmetry.h"
#include "program/program.h"

namespace stepcast {
namespace {

DataFolders source_folders() {
  const std::string root = STEPCAST_SOURCE_DIR;
  return {root + "/models", root + "/topologies", root + "/calibrate/profiles"};
}

constexpr const char* kCases[] = {
    R"({"stepcast": 1, "model": "gpt3-175b", "cluster": {"base": "dgx-a100-80g", "nodes": 128},
        "training": {"global_batch": 1536, "sequence_length": 2048},
        "layout": {"tp": 8, "pp": 8, "dp": 16}})",
    R"({"stepcast": 1, "model": "llama-3.1-405b",
        "cluster": {"base": "grand-teton-h100-96g", "nodes": 2048},
        "training": {"global_batch": 2048, "sequence_length": 8192},
        "layout": {"tp": 8, "pp": 16, "dp": 128}})",
    R"({"stepcast": 1, "model": "megatron-530b", "cluster": {"base": "dgx-a100-80g", "nodes": 35},
        "training": {"global_batch": 280, "sequence_length": 2048},
        "layout": {"tp": 8, "pp": 35, "schedule": "interleaved", "virtual_stages": 3,
                   "recompute": "full"}})"};
constexpr const char* kLabels[] = {"gpt3-175b on 1024", "llama-3.1-405b on 16384",
                                   "530b, 35 stages of 3 chunks, 280 micro-batches"};

// Nothing when the case cannot be read; the benchmark then says why.
Result<Scenario> scenario_of(benchmark::State& state) {
  const auto index = static_cast<std::size_t>(state.range(0));
  state.SetLabel(kLabels[index]);
  auto document = JsonDocument::parse(kCases[index], "benchmark");
  if (!document) return failure(document.error());
  return read_scenario(**document, source_folders());
}

void BM_ReadScenario(benchmark::State& state) {
  for (auto _ : state) {
    const auto scenario = scenario_of(state);
    if (!scenario) return state.SkipWithError(to_string(scenario.error()).c_str());
  }
}

void BM_Predict(benchmark::State& state) {
  const auto scenario = scenario_of(state);
  if (!scenario) return state.SkipWithError(to_string(scenario.error()).c_str());
  std::uint64_t tasks = 0;
  for (auto _ : state) {
    const auto prediction = predict(*scenario, source_folders());
    if (!prediction) return state.SkipWithError(to_string(prediction.error()).c_str());
    tasks = prediction->simulated_tasks;
  }
  state.counters["tasks"] = static_cast<double>(tasks);
}

void BM_Lower(benchmark::State& state) {
  const auto scenario = scenario_of(state);
  if (!scenario) return state.SkipWithError(to_string(scenario.error()).c_str());
  for (auto _ : state) benchmark::DoNotOptimize(lower(*scenario));
}

RepeatedUnits units_of(const Scenario& scenario) {
  return find_units(scenario.cluster.topology, scenario.cluster.spec.gpus_per_domain());
}

void BM_PlaceTraffic(benchmark::State& state) {
  const auto scenario = scenario_of(state);
  if (!scenario) return state.SkipWithError(to_string(scenario.error()).c_str());
  const CollectiveCosts collectives(scenario->cluster, source_folders().profiles);
  const RankGrid grid(scenario->layout);
  const Program program = lower(*scenario);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        place_traffic(*scenario, program, grid, collectives, kNoStamps, units_of(*scenario)));
  }
}

void BM_FindSymmetry(benchmark::State& state) {
  const auto scenario = scenario_of(state);
  if (!scenario) return state.SkipWithError(to_string(scenario.error()).c_str());
  const CollectiveCosts collectives(scenario->cluster, source_folders().profiles);
  const RankGrid grid(scenario->layout);
  const Traffic traffic =
      place_traffic(*scenario, lower(*scenario), grid, collectives, kNoStamps, units_of(*scenario));
  std::size_t classes = 0;
  for (auto _ : state) {
    classes = find_symmetry(*scenario, grid, traffic, collectives, true).ranks.size();
  }
  state.counters["classes"] = static_cast<double>(classes);
}

BENCHMARK(BM_ReadScenario)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Predict)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Lower)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_PlaceTraffic)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_FindSymmetry)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stepcast

int main(int argc, char** argv) { return stepcast::run_benchmarks(argc, argv); }
