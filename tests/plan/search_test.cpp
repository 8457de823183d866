// SPDX-License-Identifier: Apache-2.0
// The search finds what trying everything finds.
#include "plan/search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/each.h"
#include "core/seeded_random.h"
#include "plan/layout_code.h"
#include "plan/planning.h"
#include "plan/ranking.h"

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

constexpr const char* kSmall = R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
    "training":{"global_batch":16,"sequence_length":1024},"layout":{"recompute":"none"}})";

TEST(Search, GivesTheSameForAnyNumberOfThreads) {
  const auto planner = planner_of(kSmall);
  ASSERT_NE(planner, nullptr);
  SearchOptions options;
  options.front = 3;
  std::optional<SearchResult> first;
  for (const int threads : {1, 2, 5}) {
    options.threads = threads;
    const auto result = planner->search(options);
    ASSERT_TRUE(result);
    if (!first) first = *result;
    ASSERT_EQ(result->found.size(), first->found.size());
    for (std::size_t i = 0; i < result->found.size(); ++i) {
      EXPECT_EQ(result->found[i].choice, first->found[i].choice);
      EXPECT_EQ(result->found[i].prediction.step_time.value(),
                first->found[i].prediction.step_time.value());
    }
    EXPECT_EQ(result->front, first->front);
    EXPECT_EQ(result->replayed, first->replayed);
    EXPECT_EQ(result->cut_by_memory, first->cut_by_memory);
    EXPECT_EQ(result->cut_by_time, first->cut_by_time);
  }
}

TEST(Search, EndsWhenItIsToldTo) {
  const auto planner = planner_of(kSmall);
  ASSERT_NE(planner, nullptr);
  SearchOptions options;
  options.prove = true;
  options.top = 1000;
  std::int64_t replayed = 0;
  options.progress = [&](const SearchProgress& state) { replayed = state.replayed; };
  options.stop = [&] { return replayed > 0; };
  const auto result = planner->search(options);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->interrupted);
  EXPECT_FALSE(result->proven);
  EXPECT_FALSE(result->found.empty());
  EXPECT_GT(result->bound_s, 0);
  EXPECT_LE(result->bound_s, result->found.back().prediction.step_time.value());
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

TEST(Search, KnowsABoundOfWhatItHasNotReplayed) {
  const auto planner = planner_of(kSmall);
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

// Equal layouts fill one place: what stands in the last one must be certain too.
// A search whose time is over as it begins.
SearchOptions without_time() {
  SearchOptions options;
  options.deadline = std::chrono::steady_clock::now();
  options.first_answer_s = 1e6;
  return options;
}

TEST(Search, AnswersWhenItsTimeIsOverBeforeItBegins) {
  for (const char* text :
       {kSmall, R"({"stepcast":1,"model":"llama-3.1-405b","cluster":"dgx-h100x64",
                    "training":{"global_batch":2048,"sequence_length":4096}})",
        R"({"stepcast":1,"model":"qwen3-30b-a3b","cluster":"dgx-h100x2",
            "training":{"global_batch":512,"sequence_length":4096}})"}) {
    const auto planner = planner_of(text);
    ASSERT_NE(planner, nullptr);
    const auto result = planner->search(without_time());
    ASSERT_TRUE(result);
    EXPECT_TRUE(result->interrupted);
    EXPECT_FALSE(result->proven);
    ASSERT_EQ(result->found.size(), 1u) << text;
    const FoundLayout& found = result->found.front();
    EXPECT_LE(found.prediction.peak_device, result->memory_limit);
    Scenario scratch = planner->space().base();
    EXPECT_TRUE(planner->space().objections(found.choice, scratch).empty());
  }
}

TEST(Search, SaysThatNothingFitsWithoutTime) {
  const auto planner = planner_of(R"({"stepcast":1,"model":"llama-2-70b","cluster":"dgx-a100-40gx1",
    "training":{"global_batch":8,"sequence_length":2048}})");
  ASSERT_NE(planner, nullptr);
  const auto result = planner->search(without_time());
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->found.empty());
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

TEST(Search, SharesTheTimeThatIsLeft) {
  using Clock = std::chrono::steady_clock;
  SearchOptions options;
  options.time_limit_s = 3600;
  const auto before = Clock::now();
  share_time_limit(options);
  ASSERT_TRUE(options.deadline);
  EXPECT_EQ(options.time_limit_s, 0);
  const auto quarter = with_share_of_time(options, 4).deadline;
  const auto after = Clock::now();
  ASSERT_TRUE(quarter);
  const auto share = [&](Clock::time_point now) { return now + (*options.deadline - now) / 4; };
  EXPECT_GE(*quarter, share(before));
  EXPECT_LE(*quarter, share(after));
  EXPECT_FALSE(with_share_of_time(SearchOptions{}, 4).deadline);
}

TEST(Search, ProvesDistinctPlaces) {
  const auto planner = planner_of(kSmall);
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

TEST(Search, LeavesAMarginOfMemory) {
  const auto planner = planner_of(kSmall);
  ASSERT_NE(planner, nullptr);
  SearchOptions options;
  options.memory_margin = 0.8;
  const auto result = planner->search(options);
  ASSERT_TRUE(result);
  const ByteCount memory = planner->space().base().cluster.spec.accelerator.memory;
  ASSERT_FALSE(result->found.empty());
  for (const FoundLayout& found : result->found) {
    EXPECT_LE(found.prediction.peak_device, memory / 5 + 1);
  }
}

// Each point of the front needs less memory and more time than the one before.
TEST(Search, FrontTradesTimeForMemory) {
  const auto planner = planner_of(kSmall);
  ASSERT_NE(planner, nullptr);
  SearchOptions options;
  options.front = 4;
  const auto result = planner->search(options);
  ASSERT_TRUE(result);
  ASSERT_GE(result->front.size(), 2u);
  EXPECT_EQ(result->front.front(), 0u);
  for (std::size_t i = 1; i < result->front.size(); ++i) {
    const Prediction& before = result->found[result->front[i - 1]].prediction;
    const Prediction& point = result->found[result->front[i]].prediction;
    EXPECT_GE(point.step_time, before.step_time);
    EXPECT_LE(point.peak_device, before.peak_device / 10 * 9);
  }
}

}  // namespace
}  // namespace stepcast
