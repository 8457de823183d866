// SPDX-License-Identifier: Apache-2.0
#include "plan/offers/layout_ranking.h"

#include <gtest/gtest.h>

#include <set>

#include "plan/offers/searching.h"

namespace stepcast {
namespace {

// Megatron and FSDP layouts, whose checkpoints differ, on nodes that fail often enough for that to
// put some FSDP layouts before Megatron layouts of a shorter step.
constexpr const char* kTwoFrameworks =
    R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
        "training":{"global_batch":64,"sequence_length":2048},
        "layout":{"tp":1,"pp":1,"sequence_parallel":false,"order":"tp-cp-ep-dp-pp"},
        "run":{"failures_per_node_day":400,"restart":"10 s","checkpoint":{"bandwidth":"1 GB/s"}}})";

class SearchBy : public ::testing::TestWithParam<Objective> {};

TEST_P(SearchBy, FindsWhatTryingEverythingFinds) {
  const auto planner = planner_of(kTwoFrameworks);
  ASSERT_NE(planner, nullptr);
  ASSERT_EQ(planner->frameworks().size(), 2u);
  const PriceList prices = source_prices();
  const std::vector<double> values = all_values(*planner, GetParam(), prices);
  ASSERT_GE(values.size(), 40u);
  for (const std::int64_t top : {1, 20, 150}) {
    SearchOptions options;
    options.prove = true;
    options.top = top;
    options.threads = 2;
    const auto result = search_by(GetParam(), *planner, prices, options);
    ASSERT_TRUE(result);
    EXPECT_TRUE(result->proven);
    for (std::size_t i = 0; i < static_cast<std::size_t>(top); ++i) {
      const FoundLayout& found = result->found[i];
      const RunOutlook run = outlook_of(*planner, prices, found);
      EXPECT_EQ(objective_value(GetParam(), found.prediction.step_time, run.forecast), values[i])
          << "place " << i + 1 << " of " << top;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Objectives, SearchBy,
                         ::testing::Values(Objective::kStepTime, Objective::kCost,
                                           Objective::kGoodput),
                         [](const auto& objective) {
                           return std::string(name_of(objective.param)) == "step_time" ? "StepTime"
                                  : objective.param == Objective::kCost                ? "Cost"
                                                                                       : "Goodput";
                         });

TEST(SearchBy, FrontIsThatOfTimeAndMemory) {
  const auto planner = planner_of(kTwoFrameworks);
  ASSERT_NE(planner, nullptr);
  SearchOptions options;
  options.front = 3;
  const auto by_time = planner->search(options);
  const auto by_cost = search_by(Objective::kCost, *planner, source_prices(), options);
  ASSERT_TRUE(by_time && by_cost);
  std::set<LayoutChoice> one, other;
  for (const std::size_t i : by_time->front) one.insert(by_time->found[i].choice);
  for (const std::size_t i : by_cost->front) other.insert(by_cost->found[i].choice);
  EXPECT_EQ(one, other);
}

}  // namespace
}  // namespace stepcast
