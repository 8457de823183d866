// SPDX-License-Identifier: Apache-2.0
#include "plan/balanced_stages.h"

#include "core/each.h"
#include "plan/search.h"
#include "planning.h"

namespace stepcast {
namespace {

std::string eight_billion(const std::string& more, const std::string& recompute = "none") {
  return R"({"stepcast": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100x4",
             "training": {"framework": "megatron", "global_batch": 128, "sequence_length": 8192},
             "layout": {"tp": 1, "cp": 1, "ep": 1, "zero": 1, "micro_batch": 1, "schedule": "1f1b",
                        "recompute": ")" +
         recompute + "\"" + more + "}}";
}

std::optional<BalancedStages> balanced(const std::string& layout,
                                       const std::string& recompute = "none") {
  const auto planner = planner_of(eight_billion(layout, recompute));
  if (!planner) return std::nullopt;
  const auto result = planner->search({});
  EXPECT_TRUE(result) << to_string(result.error());
  EXPECT_FALSE(result->found.empty());
  return balance_stages(*planner, *result);
}

// The forecast of that deal, stated: the last of four stages is 1.84 layers longer than the others
// otherwise (tests/layout/balanced_layers_test.cpp).
TEST(BalancedStages, AreTheForecastOfTheirDeal) {
  const auto found = balanced(R"(, "pp": 4)");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->layers, (std::vector<std::int64_t>{9, 9, 8, 6}));
  const auto stated = planner_of(eight_billion(R"(, "pp": 4, "stage_layers": [9, 9, 8, 6])"));
  const auto even = planner_of(eight_billion(R"(, "pp": 4)"));
  ASSERT_TRUE(stated && even);
  const auto of_stated = stated->search({}), of_even = even->search({});
  ASSERT_TRUE(of_stated && of_even);
  EXPECT_EQ(found->step_time, of_stated->found.front().prediction.step_time);
  EXPECT_LT(found->step_time, 0.95 * of_even->found.front().prediction.step_time);
}

TEST(BalancedStages, AreNoneWithoutStagesOrWithADealOfTheUsers) {
  EXPECT_FALSE(balanced(R"(, "pp": 1)", "full"));
  EXPECT_FALSE(balanced(R"(, "pp": 4, "stage_layers": [8, 8, 8, 8])"));
  EXPECT_FALSE(balanced(R"(, "pp": 4, "stage_layers": "balanced")"));
}

// A search under the word deals each pipeline by itself.
TEST(BalancedStages, TheWordIsOfEveryPipelineOfASearch) {
  const auto planner = planner_of(eight_billion(R"(, "stage_layers": "balanced")"));
  ASSERT_TRUE(planner);
  const auto result = planner->search({});
  ASSERT_TRUE(result) << to_string(result.error());
  for (const FoundLayout& found : each_of(result->found)) {
    Scenario scenario = planner->space().base();
    planner->space().put(found.choice, scenario);
    const std::int64_t pp = scenario.layout.pp;
    EXPECT_EQ(scenario.layout.stage_layers.size(), static_cast<std::size_t>(pp > 1 ? pp : 0));
  }
}

}  // namespace
}  // namespace stepcast
