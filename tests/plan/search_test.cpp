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

TEST(Search, GivesTheSameForAnyNumberOfThreads) {
  const auto planner = planner_of(kQuickSearch);
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
  const auto planner = planner_of(kQuickSearch);
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
       {kQuickSearch, R"({"stepcast":1,"model":"llama-3.1-405b","cluster":"dgx-h100x64",
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

TEST(Search, LeavesAMarginOfMemory) {
  const auto planner = planner_of(kQuickSearch);
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

// Bounds of memory lie below what a replay finds, which decides.
TEST(Search, ALayoutWhoseReplayPassesTheLimitIsNoPlace) {
  const auto planner = planner_of(
      R"({"stepcast":1,"model":"llama-3.1-8b","cluster":{"base":"dgx-h100","nodes":1},
          "training":{"global_batch":64,"sequence_length":8192,"framework":"megatron"},
          "layout":{"tp":2,"pp":4}})");
  ASSERT_NE(planner, nullptr);
  SearchOptions options;
  options.memory_margin = 0.4;
  const auto result = planner->search(options);
  ASSERT_TRUE(result);
  EXPECT_GT(result->replayed_too_large, 0);
  ASSERT_FALSE(result->found.empty());
  for (const FoundLayout& found : result->found) {
    EXPECT_LE(found.prediction.peak_device, result->memory_limit);
  }
}

// Each point of the front needs less memory and more time than the one before.
TEST(Search, FrontTradesTimeForMemory) {
  const auto planner = planner_of(kQuickSearch);
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
