// SPDX-License-Identifier: Apache-2.0
// The search finds what trying everything finds, on spaces of some hundred layouts.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/each.h"
#include "plan/planning.h"
#include "plan/ranking.h"
#include "plan/search.h"

namespace stepcast {
namespace {

struct SmallSpace {
  const char* name;
  const char* text;
};

// With these keys fixed each space has a few hundred layouts: pipelines, sharded data, memory that
// binds, a partly used node, transfers on the step's own path, no barrier.
constexpr SmallSpace kSmallSpaces[] = {
    {"OneNode", R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
      "training":{"global_batch":16,"sequence_length":1024},
      "layout":{"recompute":"none","overlap":{"grad_reduce":false,"param_gather":false}}})"},
    {"TwoNodes", R"({"stepcast":1,"model":"llama-3.2-1b","cluster":"dgx-h100x2",
      "training":{"global_batch":32,"sequence_length":1024},
      "layout":{"recompute":"selective","sequence_parallel":true,"zero":1,
        "overlap":{"grad_reduce":true,"param_gather":false,"tp":false}}})"},
    {"OverlappedPipeline", R"({"stepcast":1,"model":"gpt3-2.7b","cluster":"dgx-a100-80gx2",
      "training":{"global_batch":32,"sequence_length":1024},
      "layout":{"tp":2,"recompute":"none","order":"tp-cp-ep-dp-pp","sequence_parallel":true}})"},
    {"MemoryBinds", R"({"stepcast":1,"model":"gpt3-6.7b","cluster":"dgx-a100-40gx1",
      "training":{"global_batch":8,"sequence_length":2048},
      "layout":{"zero":1,"order":"tp-cp-ep-dp-pp","sequence_parallel":true,
        "overlap":{"grad_reduce":false,"param_gather":false,"tp":false}}})"},
    {"Sharded", R"({"stepcast":1,"model":"llama-2-7b","cluster":"dgx-a100-80gx1",
      "training":{"framework":"fsdp","global_batch":16,"sequence_length":1024},
      "layout":{"tp":1,"pp":1}})"},
    {"DeepSpeed", R"({"stepcast":1,"model":"gpt3-2.7b","cluster":"dgx-a100-80gx1",
      "training":{"framework":"deepspeed","global_batch":16,"sequence_length":1024},
      "layout":{"recompute":"full","order":"tp-cp-ep-dp-pp"}})"},
    {"Native", R"({"stepcast":1,"model":"gpt2","cluster":"dgx-a100-80gx1",
      "training":{"framework":"native","global_batch":16,"sequence_length":512},
      "layout":{"zero":0,"recompute":"none","order":"tp-cp-ep-dp-pp","sequence_parallel":true}})"},
    {"PartOfANode",
     R"({"stepcast":1,"model":"gpt3-1.3b","cluster":{"base":"dgx-a100-80g","gpus":12},
      "training":{"global_batch":24,"sequence_length":512},
      "layout":{"recompute":"none","zero":1,"micro_batch":1,
        "overlap":{"grad_reduce":false,"param_gather":false,"tp":false}}})"},
    {"NoClipping", R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
      "training":{"global_batch":16,"sequence_length":1024,"grad_clip":"none"},
      "layout":{"recompute":"none","order":"tp-cp-ep-dp-pp","overlap":{"tp":false}}})"},
    {"Pcie", R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"pcie-4090-8x1",
      "training":{"global_batch":16,"sequence_length":512},
      "layout":{"sequence_parallel":true,"zero":1,
        "overlap":{"grad_reduce":false,"param_gather":false,"tp":false}}})"},
};

class Exhaustive : public ::testing::TestWithParam<SmallSpace> {};

TEST_P(Exhaustive, SearchFindsTheOptimumOfTheSpace) {
  const auto planner = planner_of(GetParam().text);
  ASSERT_NE(planner, nullptr);
  const std::vector<LayoutChoice> layouts = all_layouts(planner->space());
  ASSERT_GE(layouts.size(), 20u);
  std::vector<double> values;
  std::vector<Simplicity> simplicities;
  Scenario scratch = planner->space().base();
  for (const LayoutChoice& choice : layouts) {
    const auto forecast = planner->predict(choice);
    ASSERT_TRUE(forecast) << to_string(forecast.error());
    if (!forecast->fits) continue;
    values.push_back(forecast->step_time.value());
    simplicities.push_back(simplicity(planner->space(), choice, forecast->peak_device, scratch));
  }
  const std::vector<std::size_t> order = order_of_places(values, simplicities);
  SearchOptions options;
  options.top = 5;
  options.prove = true;
  options.threads = 2;
  const auto result = planner->search(options);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->proven);
  EXPECT_LE(result->bounded, static_cast<std::int64_t>(layouts.size()));
  EXPECT_LE(result->replayed, result->bounded);
  EXPECT_EQ(result->found.empty(), values.empty());
  for (std::size_t i = 0; i < std::min<std::size_t>(5, values.size()); ++i) {
    EXPECT_EQ(result->found[i].prediction.step_time.value(), values[order[i]]) << "place " << i + 1;
  }
  RecordProperty("layouts", static_cast<int>(layouts.size()));
  RecordProperty("replayed", static_cast<int>(result->replayed));
}

INSTANTIATE_TEST_SUITE_P(Spaces, Exhaustive, ::testing::ValuesIn(kSmallSpaces),
                         [](const auto& space) { return std::string(space.param.name); });

TEST(Search, KnowsABoundOfWhatItHasNotReplayed) {
  const auto planner = planner_of(kQuickSearch);
  ASSERT_NE(planner, nullptr);
  SearchOptions options;
  options.prove = true;
  std::int64_t bounded = 0;
  options.progress = [&](const SearchProgress& state) { bounded = state.bounded; };
  options.stop = [&] { return bounded > 0; };
  const auto result = planner->search(options);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->interrupted);
  EXPECT_FALSE(result->proven);
  ASSERT_FALSE(result->found.empty());
  EXPECT_GT(result->bound_s, 0);
  const double best = result->found.front().prediction.step_time.value();
  AtLeast others(1);
  for (const LayoutChoice& choice : all_layouts(planner->space())) {
    if (std::ranges::any_of(result->found, [&](const auto& f) { return f.choice == choice; })) {
      continue;
    }
    const auto forecast = planner->predict(choice);
    ASSERT_TRUE(forecast);
    if (forecast->peak_device > result->memory_limit) continue;
    EXPECT_GE(forecast->step_time.value(), std::min(best, result->bound_s));
    ++others;
  }
}

TEST(Search, WithEnoughTimeFindsWhatItFindsWithoutALimit) {
  for (const SmallSpace& space : kSmallSpaces) {
    const auto planner = planner_of(space.text);
    ASSERT_NE(planner, nullptr);
    SearchOptions options;
    options.prove = true;
    const auto whole = planner->search(options);
    options.time_limit_s = 1e6;
    const auto limited = planner->search(options);
    ASSERT_TRUE(whole && limited);
    EXPECT_TRUE(limited->proven);
    EXPECT_FALSE(limited->interrupted);
    ASSERT_FALSE(whole->found.empty());
    ASSERT_FALSE(limited->found.empty());
    const FoundLayout &one = limited->found.front(), &other = whole->found.front();
    EXPECT_TRUE(share_place(one.prediction, other.prediction))
        << space.name << ": " << words(planner->space(), one.choice) << " "
        << one.prediction.step_time.value() << "\n"
        << words(planner->space(), other.choice) << " " << other.prediction.step_time.value();
    EXPECT_EQ(one.choice, other.choice) << space.name;
  }
}

TEST(Search, ProvesDistinctPlaces) {
  const auto planner = planner_of(kQuickSearch);
  ASSERT_NE(planner, nullptr);
  SearchOptions options;
  options.prove = true;
  options.top = 40;
  const auto result = planner->search(options);
  ASSERT_TRUE(result && result->proven);
  const auto same = [](const FoundLayout& a, const FoundLayout& b) {
    return share_place(a.prediction, b.prediction);
  };
  std::vector<FoundLayout> distinct = result->found;
  distinct.erase(std::unique(distinct.begin(), distinct.end(), same), distinct.end());
  ASSERT_GE(distinct.size(), 40u);
  EXPECT_GE(result->found.size(), distinct.size());
  AtLeast others(1);
  for (const LayoutChoice& choice : all_layouts(planner->space())) {
    if (std::ranges::any_of(result->found, [&](const auto& f) { return f.choice == choice; })) {
      continue;
    }
    const auto forecast = planner->predict(choice);
    ASSERT_TRUE(forecast);
    if (!forecast->fits) continue;
    ++others;
    ASSERT_GE(forecast->step_time.value(), distinct[39].prediction.step_time.value());
  }
}

TEST(Search, SaysWhatNeedsLeastWhenNothingFits) {
  const auto planner = planner_of(
      R"({"stepcast":1,"model":"gpt3-175b","cluster":"dgx-a100-40gx1",
          "training":{"global_batch":8,"sequence_length":2048}})");
  ASSERT_NE(planner, nullptr);
  const auto result = planner->search({});
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->found.empty());
  EXPECT_TRUE(result->proven);
  EXPECT_EQ(result->replayed, 0);
  ASSERT_TRUE(result->smallest);
  EXPECT_GT(result->smallest->device_bytes, result->memory_limit);
}

// A round has 32 replays, so that 40 places take two.
TEST(Search, EndsWhereNothingLeftIsMuchFaster) {
  const auto planner = planner_of(kSmallSpaces[1].text);
  ASSERT_NE(planner, nullptr);
  SearchOptions options;
  options.top = 40;
  options.prove = true;
  const auto whole = planner->search(options);
  options.prove = false;
  options.close_enough = 1;
  const auto close = planner->search(options);
  ASSERT_TRUE(whole && close);
  EXPECT_TRUE(whole->proven);
  EXPECT_LT(close->replayed, whole->replayed);
  EXPECT_FALSE(close->interrupted);
  ASSERT_GE(close->found.size(), 40U);
  EXPECT_GT(close->bound_s, 0);
  EXPECT_LE(close->found[39].ranked_s, 2 * close->bound_s);
  options.prove = true;
  const auto proven = planner->search(options);
  ASSERT_TRUE(proven);
  EXPECT_EQ(proven->replayed, whole->replayed) << "a proof does not end early";
}

}  // namespace
}  // namespace stepcast
