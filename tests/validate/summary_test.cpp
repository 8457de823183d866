// SPDX-License-Identifier: Apache-2.0
#include "validate/summary.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "validate/made_cases.h"

namespace stepcast {
namespace {

using stepcast::testing::failed_case;
using stepcast::testing::made_case;
using stepcast::testing::unsupported_case;

TEST(Summary, GivesTheStatisticsOfAbsoluteErrorsAndTheirBias) {
  // Errors +10 %, -20 %, +30 %: mean 20 %, median 20 %, bias 20/3 %, p90 at 1.8 of 2: 28 %.
  const Summary summary =
      summarise({made_case("a", 1.1, 1), made_case("b", 0.8, 1), made_case("c", 1.3, 1)});
  const ErrorStatistics& time = summary.all.step_time;
  EXPECT_EQ(time.count, 3u);
  EXPECT_NEAR(time.mean_abs, 0.2, 1e-12);
  EXPECT_NEAR(time.median_abs, 0.2, 1e-12);
  EXPECT_NEAR(time.p90_abs, 0.28, 1e-12);
  EXPECT_NEAR(time.max_abs, 0.3, 1e-12);
  EXPECT_NEAR(*time.bias, 0.2 / 3, 1e-12);
}

TEST(Summary, CountsAFailedCaseAsOneInAbsoluteErrorsAndNotInTheBias) {
  const Summary summary = summarise({made_case("a", 1.1, 1), failed_case("b")});
  EXPECT_EQ(summary.all.count, 2u);
  EXPECT_EQ(summary.all.failed, 1u);
  EXPECT_NEAR(summary.all.step_time.mean_abs, 0.55, 1e-12);
  EXPECT_NEAR(summary.all.step_time.max_abs, 1, 1e-12);
  EXPECT_NEAR(*summary.all.step_time.bias, 0.1, 1e-12);
  EXPECT_EQ(summary.all.peak_memory.count, 0u);  // it measured no memory
}

TEST(Summary, CountsWhatIsNotSupportedApartFromErrors) {
  const Summary summary = summarise({made_case("a", 1.1, 1), unsupported_case("b")});
  EXPECT_EQ(summary.all.count, 2u);
  EXPECT_EQ(summary.all.failed, 0u);
  EXPECT_EQ(summary.all.not_supported, 1u);
  EXPECT_NEAR(summary.all.step_time.mean_abs, 0.1, 1e-12);
  EXPECT_EQ(summary.all.step_time.count, 1u);
}

TEST(Summary, HasNoBiasWhenEveryCaseFailed) {
  const Summary summary = summarise({failed_case("a")});
  EXPECT_FALSE(summary.all.step_time.bias);
  EXPECT_FALSE(summary.all.coverage);
}

TEST(Summary, KeepsCasesThatAProfileWasFittedOnApart) {
  CaseResult fitted = made_case("a", 1, 1);
  fitted.fitted = true;
  fitted.tags = {"t"};
  const Summary summary = summarise({fitted, made_case("b", 2, 1)});
  EXPECT_EQ(summary.all.count, 1u);
  EXPECT_NEAR(summary.all.step_time.mean_abs, 1, 1e-12);
  EXPECT_FALSE(summary.tags.contains("t"));
  EXPECT_EQ(summary.suites.at("s").count, 1u);
  ASSERT_TRUE(summary.fitted);
  EXPECT_EQ(summary.fitted->count, 1u);
}

TEST(Summary, HasRowsForSuitesTagsAndCasesWithNothingAssumed) {
  CaseResult tagged = made_case("a", 1.1, 1);
  tagged.tags = {"x", "y", "x"};
  CaseResult assumed = made_case("b", 1.2, 1);
  assumed.tags = {"y"};
  assumed.nothing_assumed = false;
  CaseResult other = made_case("c", 1.3, 1);
  other.suite = "other";
  const Summary summary = summarise({tagged, assumed, other});
  EXPECT_EQ(summary.all.count, 3u);
  EXPECT_EQ(summary.nothing_assumed.count, 2u);
  EXPECT_EQ(summary.suites.at("s").count, 2u);
  EXPECT_EQ(summary.suites.at("other").count, 1u);
  EXPECT_EQ(summary.tags.at("x").count, 1u);
  EXPECT_EQ(summary.tags.at("y").count, 2u);
}

TEST(Summary, CoverageIsTheShareOfMeasurementsInsideTheInterval) {
  // The interval is +-10 % of the forecast: 1.05 lies in it, 1.5 does not.
  const Summary summary = summarise({made_case("a", 1, 1.05), made_case("b", 1, 1.5)});
  EXPECT_DOUBLE_EQ(*summary.all.coverage, 0.5);
}

TEST(Summary, RanksLayoutsOnlyWithinTheirGroup) {
  // Group g is in the right order, group h reversed; a pair each. Across groups nothing counts.
  const Summary summary =
      summarise({made_case("a", 1, 10, "g"), made_case("b", 2, 20, "g"), made_case("c", 1, 8, "h"),
                 made_case("d", 2, 4, "h"), made_case("e", 9, 1, "i")});
  EXPECT_EQ(summary.all.groups, 2u);
  EXPECT_DOUBLE_EQ(*summary.all.kendall_tau, 0);
  // Regret: 0 in g; in h the predicted best takes 8 against 4, which is 1. Mean 0.5.
  EXPECT_DOUBLE_EQ(*summary.all.regret, 0.5);
}

TEST(Summary, GroupsWeighByTheirPairsInTau) {
  // g: three in order, 3 pairs, tau 1. h: two reversed, 1 pair, tau -1. (3 - 1) / 4.
  const Summary summary =
      summarise({made_case("a", 1, 1, "g"), made_case("b", 2, 2, "g"), made_case("c", 3, 3, "g"),
                 made_case("d", 1, 2, "h"), made_case("e", 2, 1, "h")});
  EXPECT_DOUBLE_EQ(*summary.all.kendall_tau, 0.5);
}

TEST(Summary, HasNoRankingWithoutTwoLayoutsToCompare) {
  const Summary summary = summarise({made_case("a", 1, 1, "g"), made_case("b", 1, 1, "h")});
  EXPECT_FALSE(summary.all.kendall_tau);
  EXPECT_FALSE(summary.all.regret);
}

TEST(SummaryMetrics, AnswerToEveryNameThatIsListed) {
  CaseResult full = made_case("a", 1, 1);
  full.errors.peak_memory = 0.1;
  full.errors.bubble_fraction = 0.1;
  full.errors.collective_time = 0.1;
  full.collective.emplace();
  full.collective->algorithm = full.collective->named_algorithm = "ring";
  const Summary summary = summarise({full, made_case("b", 2, 2)});
  for (const std::string& name : metric_names()) {
    EXPECT_TRUE(metric_of(summary.all, name)) << name;
  }
  EXPECT_FALSE(metric_of(summary.all, "step_time.mean"));
}

TEST(SummaryMetrics, FindRowsByName) {
  CaseResult tagged = made_case("a", 1, 1);
  tagged.tags = {"t"};
  const Summary summary = summarise({tagged});
  for (const std::string& name : row_names(summary)) EXPECT_NE(row_of(summary, name), nullptr);
  EXPECT_EQ(row_of(summary, "t"), &summary.tags.at("t"));
  EXPECT_EQ(row_of(summary, "u"), nullptr);
  EXPECT_EQ(row_of(summary, "fitted"), nullptr);
}

}  // namespace
}  // namespace stepcast
