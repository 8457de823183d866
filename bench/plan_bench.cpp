// SPDX-License-Identifier: Apache-2.0
// The tiers of a search, each alone, in the space of GPT-3 175B on 512 A100s: walking it, bounding
// a layout, replaying one; and whole searches of one cluster and of many offers.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "bench_main.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/seeded_random.h"
#include "layout/data_folders.h"
#include "layout/framework_rules.h"
#include "layout/scenario.h"
#include "plan/bound.h"
#include "plan/offers/offer_requests.h"
#include "plan/offers/offer_search.h"
#include "plan/planner.h"
#include "plan/space.h"

namespace stepcast {
namespace {

constexpr const char* kScenario =
    R"({"stepcast": 1, "model": "gpt3-175b", "cluster": {"base": "dgx-a100-80g", "nodes": 64},
        "training": {"global_batch": 1536, "sequence_length": 2048}})";

// The part of it with one tensor and one pipeline degree: few enough layouts to walk them all.
constexpr const char* kPart =
    R"({"stepcast": 1, "model": "gpt3-175b", "cluster": {"base": "dgx-a100-80g", "nodes": 64},
        "training": {"global_batch": 1536, "sequence_length": 2048},
        "layout": {"tp": 8, "pp": 8}})";

DataFolders source_folders() {
  const std::string root = STEPCAST_SOURCE_DIR;
  return {root + "/models", root + "/topologies", root + "/calibrate/profiles"};
}

std::unique_ptr<Planner> make_planner(benchmark::State& state, const char* scenario = kScenario) {
  auto document = JsonDocument::parse(scenario, "benchmark");
  auto planner = Planner::make(**document, source_folders());
  if (planner) return std::move(*planner);
  state.SkipWithError(to_string(planner.error()).c_str());
  return nullptr;
}

// Legal layouts under some branches, the same in every run, with many degrees and micro-batches.
std::vector<LayoutChoice> some_layouts(const Space& space, std::size_t branches) {
  std::vector<LayoutChoice> out;
  Scenario scenario = space.base();
  SpaceCount count;
  const std::vector<LayoutChoice> all = space.branches(count);
  SeededRandom random(1);
  for (std::size_t i = 0; i < branches; ++i) {
    const auto at = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(all.size())));
    space.walk(all[at], scenario, [&](const LayoutChoice& choice) { out.push_back(choice); });
  }
  return out;
}

// Calls visit() at every layout of the part; one iteration walks them all.
template <class Visit>
void walk_part(benchmark::State& state, const Planner& planner, Scenario& scenario, Visit visit) {
  const Space& space = planner.space();
  SpaceCount count;
  const std::vector<LayoutChoice> branches = space.branches(count);
  std::int64_t layouts = 0;
  for (auto _ : state) {
    for (const LayoutChoice& branch : branches)
      layouts += space.walk(branch, scenario, visit).legal;
  }
  state.SetItemsProcessed(layouts);
}

void BM_Walk(benchmark::State& state) {
  const auto planner = make_planner(state, kPart);
  if (!planner) return;
  Scenario scenario = planner->space().base();
  walk_part(state, *planner, scenario, [](const LayoutChoice&) {});
}

// Walked in order, as the search does.
void BM_WalkAndBound(benchmark::State& state) {
  const auto planner = make_planner(state, kPart);
  if (!planner) return;
  Scenario scenario = planner->space().base();
  BoundMaker bounds(scenario, planner->pricing());
  walk_part(state, *planner, scenario,
            [&](const LayoutChoice&) { benchmark::DoNotOptimize(bounds.bound()); });
}

// A bound alone: layouts stand ready, in the order of the walk, sub-results are made.
void BM_Bound(benchmark::State& state) {
  const auto planner = make_planner(state);
  if (!planner) return;
  const Space& space = planner->space();
  Scenario scenario = space.base();
  BoundMaker bounds(scenario, planner->pricing());
  std::vector<Layout> layouts;
  std::vector<FrameworkRules> rules;
  for (const LayoutChoice& choice : some_layouts(space, 4)) {
    space.put(choice, scenario);
    if (scenario.training.framework != Framework{}) continue;  // the bounds of one
    layouts.push_back(scenario.layout);
    rules.push_back(scenario.rules);
    benchmark::DoNotOptimize(bounds.bound());
    if (layouts.size() == 20000) break;
  }
  std::size_t next = 0;
  for (auto _ : state) {
    std::swap(scenario.layout, layouts[next]);
    std::swap(scenario.rules, rules[next]);
    benchmark::DoNotOptimize(bounds.bound());
    std::swap(scenario.layout, layouts[next]);
    std::swap(scenario.rules, rules[next]);
    next = (next + 1) % layouts.size();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

void BM_Replay(benchmark::State& state) {
  const auto planner = make_planner(state);
  if (!planner) return;
  const Space& space = planner->space();
  Scenario scenario = space.base();
  const std::vector<LayoutChoice> layouts = some_layouts(space, 16);
  SeededRandom random(2);
  for (auto _ : state) {
    const auto at =
        static_cast<std::size_t>(random.below(static_cast<std::int64_t>(layouts.size())));
    space.put(layouts[at], scenario);
    const auto& pricing = planner->pricing()[scenario.training.framework];
    benchmark::DoNotOptimize(predict(scenario, *pricing));
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

// A whole search to its proof, on one thread.
void prove(benchmark::State& state, const char* scenario) {
  const auto planner = make_planner(state, scenario);
  if (!planner) return;
  SearchOptions options;
  options.top = 1;
  options.prove = true;
  options.memory_margin = kMemoryMargin;
  std::int64_t replayed = 0;
  for (auto _ : state) {
    const auto result = planner->search(options);
    if (!result || !result->proven) return state.SkipWithError("the search proves nothing");
    replayed += result->replayed;
  }
  state.SetItemsProcessed(replayed);
}

void BM_ProveGpt3On512A100(benchmark::State& state) { prove(state, kScenario); }

void BM_ProveLlama405bOn16384H100(benchmark::State& state) {
  prove(state, R"({"stepcast": 1, "model": "llama-3.1-405b",
                   "cluster": {"base": "dgx-h100", "nodes": 2048},
                   "training": {"global_batch": 2048, "sequence_length": 8192}})");
}

// Four clusters of 256 to 4,096 GPUs.
void BM_TwentyOffers(benchmark::State& state) {
  const std::string root = STEPCAST_SOURCE_DIR;
  const auto scenario = SortedJson::parse(
      R"({"stepcast": 1, "model": "llama-3.1-70b",
          "training": {"global_batch": 4096, "sequence_length": 4096}})");
  const auto prices = load_prices({root + "/prices"});
  const OfferQuestion question{{"dgx-h100", "dgx-a100-80g", "dgx-h200", "dgx-b200"},
                               "benchmark",
                               {256, 512, 1024, 2048, 4096},
                               {}};
  const auto requests = offer_requests(scenario, question, root + "/topologies");
  if (!prices || !requests) return state.SkipWithError("prices or clusters cannot be read");
  OfferSearch search{Objective::kStepTime, {}, {}};
  search.layouts.top = 1;
  search.layouts.memory_margin = kMemoryMargin;
  for (auto _ : state) {
    auto offers = make_offers(scenario, "benchmark", *requests, source_folders());
    if (!offers || !search_offers(search, *prices, *offers).empty()) {
      return state.SkipWithError("no offer is found");
    }
  }
}

BENCHMARK(BM_Walk)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_WalkAndBound)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Bound);
BENCHMARK(BM_Replay)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_ProveGpt3On512A100)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(BM_ProveLlama405bOn16384H100)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(BM_TwentyOffers)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace stepcast

int main(int argc, char** argv) { return stepcast::run_benchmarks(argc, argv); }
