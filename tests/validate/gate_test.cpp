// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "validate/baseline.h"
#include "validate/case_limits.h"
#include "validate/made_cases.h"
#include "validate/tolerance.h"

namespace stepcast {
namespace {

using stepcast::testing::failed_case;
using stepcast::testing::made_case;
using stepcast::testing::unsupported_case;

CheckReport report_of(std::vector<CaseResult> cases) {
  CheckReport report;
  report.cases = std::move(cases);
  report.summary = summarise(report.cases);
  return report;
}

Tolerance tolerance(const std::string& text) {
  const auto parsed = parse_tolerance(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : Tolerance{};
}

std::size_t broken(const Summary& summary, const std::string& text) {
  const auto findings = apply_tolerances(summary, {tolerance(text)});
  EXPECT_TRUE(findings) << text;
  return findings ? findings->size() : 0;
}

TEST(Tolerance, ParsesFigureLimitAndRow) {
  const Tolerance plain = tolerance("step_time.mean_abs_error=0.10");
  EXPECT_EQ(plain.row, "all");
  EXPECT_EQ(plain.metric, "step_time.mean_abs_error");
  EXPECT_DOUBLE_EQ(plain.limit, 0.1);
  EXPECT_DOUBLE_EQ(tolerance("step_time.mean_abs_error=10%").limit, 0.1);
  EXPECT_EQ(tolerance("megatron-a100:kendall_tau=0.8").row, "megatron-a100");
}

TEST(Tolerance, RefusesWhatIsNoLimitOrNoFigure) {
  for (const char* text :
       {"", "step_time.mean_abs_error", "step_time.mean_abs_error=", "step_time.mean_abs_error=ten",
        "step_time.mean_abs_error=nan", "step_time.mean_abs_error=0.1x",
        "step_time.mean_abs_error=%", "step_time.mean=0.1", "=0.1"}) {
    EXPECT_FALSE(parse_tolerance(text)) << text;
  }
  const auto near = parse_tolerance("step_time.mean_abs_eror=0.1");
  ASSERT_FALSE(near);
  EXPECT_NE(near.error().front().hint.find("step_time.mean_abs_error"), std::string::npos);
}

TEST(Tolerance, IsBrokenBeyondTheLimitOnly) {
  const Summary summary = summarise({made_case("a", 1.25, 1)});  // error exactly 0.25
  EXPECT_EQ(broken(summary, "step_time.mean_abs_error=0.2"), 1u);
  EXPECT_EQ(broken(summary, "step_time.mean_abs_error=0.25"), 0u);
  EXPECT_EQ(broken(summary, "s:step_time.max_abs_error=0.2"), 1u);
}

TEST(Tolerance, LimitsTheSizeOfABiasOfEitherSign) {
  const Summary summary = summarise({made_case("a", 0.75, 1)});
  EXPECT_EQ(broken(summary, "step_time.bias=0.2"), 1u);
  EXPECT_EQ(broken(summary, "step_time.bias=0.3"), 0u);
}

TEST(Tolerance, IsALowerLimitWhereLargerIsBetter) {
  const Summary summary = summarise({made_case("a", 1, 2), made_case("b", 2, 1)});
  EXPECT_EQ(broken(summary, "kendall_tau=-0.5"), 1u);  // it is -1
  EXPECT_EQ(broken(summary, "coverage=0"), 0u);
}

TEST(Tolerance, OnAFigureThatNoCaseGivesIsBroken) {
  EXPECT_EQ(broken(summarise({made_case("a", 1, 1)}), "peak_memory.mean_abs_error=0.1"), 1u);
}

TEST(Tolerance, OnAnUnknownRowIsAnInputError) {
  const auto findings =
      apply_tolerances(summarise({made_case("a", 1, 1)}), {tolerance("megatron:step_time.bias=1")});
  ASSERT_FALSE(findings);
  EXPECT_EQ(findings.error().front().code, ErrorCode::kNotFound);
}

BaselineComparison compared(const CheckReport& report, const CheckReport& before) {
  const auto baseline = read_baseline(baseline_text(before), "b.json", {"s"});
  EXPECT_TRUE(baseline) << to_string(baseline.error());
  return compare_with_baseline(report, *baseline);
}

TEST(Baseline, OfTheSameReportShowsNoChange) {
  const CheckReport report = report_of({made_case("a", 1.3, 1), failed_case("b")});
  const BaselineComparison comparison = compared(report, report);
  EXPECT_TRUE(comparison.regressions.empty());
  EXPECT_TRUE(comparison.changes.empty());
}

TEST(Baseline, CallsALargerErrorARegressionAndASmallerOneAChange) {
  const CheckReport better = report_of({made_case("a", 1.1, 1)});
  const CheckReport worse = report_of({made_case("a", 1.3, 1)});
  const BaselineComparison down = compared(worse, better);
  const BaselineComparison up = compared(better, worse);
  EXPECT_FALSE(down.regressions.empty());
  EXPECT_TRUE(up.regressions.empty());
  EXPECT_FALSE(up.changes.empty());
}

TEST(Baseline, CallsANewFailureAndAMissingCaseRegressions) {
  const CheckReport before = report_of({made_case("a", 1, 1), made_case("b", 1, 1)});
  const BaselineComparison fails =
      compared(report_of({made_case("a", 1, 1), failed_case("b")}), before);
  const auto found = [](const BaselineComparison& comparison, const std::string& title) {
    for (const Finding& finding : comparison.regressions) {
      if (finding.title == title) return true;
    }
    return false;
  };
  EXPECT_TRUE(found(fails, "s/b"));
  EXPECT_TRUE(found(compared(report_of({made_case("a", 1, 1)}), before), "s/b"));
}

std::vector<std::string> titles_of(const std::vector<Finding>& findings) {
  std::vector<std::string> out;
  for (const Finding& finding : findings) out.push_back(finding.title);
  return out;
}

// Errors of 10 %, 10 % and 30 % become 20 %, 60 % and 10 %: b costs 50 points, a 10, and c gains.
TEST(Baseline, NamesTheCasesFirstByWhatTheyCost) {
  const CheckReport before =
      report_of({made_case("a", 1.1, 1), made_case("b", 1.1, 1), made_case("c", 1.3, 1)});
  const CheckReport after =
      report_of({made_case("a", 1.2, 1), made_case("b", 1.6, 1), made_case("c", 1.1, 1)});
  const BaselineComparison worse = compared(after, before);
  const auto titles = titles_of(worse.regressions);
  ASSERT_GT(titles.size(), 2u);
  EXPECT_EQ(titles[0], "s/b");
  EXPECT_EQ(titles[1], "s/a");
  EXPECT_TRUE(titles[2].starts_with("all: ")) << titles[2];
  EXPECT_EQ(worse.regressions[0].message, "step_time_s 1.6, was 1.1 (error +60.0 %, was +10.0 %)");
  EXPECT_EQ(titles_of(worse.changes).front(), "s/c");
}

// One case is 2 points worse and one 20 points better: no figure of all of them got worse.
TEST(Baseline, ListsACaseThatOthersMakeUpForAsAChange) {
  const CheckReport before = report_of({made_case("a", 1.06, 1), made_case("b", 1.3, 1, "h")});
  const CheckReport after = report_of({made_case("a", 1.08, 1), made_case("b", 1.1, 1, "h")});
  const BaselineComparison comparison = compared(after, before);
  EXPECT_TRUE(comparison.regressions.empty());
  const auto titles = titles_of(comparison.changes);
  EXPECT_NE(std::find(titles.begin(), titles.end(), "s/a"), titles.end());
}

TEST(Baseline, CallsACaseThatIsNotSupportedAnyMoreARegression) {
  const CheckReport before = report_of({made_case("a", 1, 1), made_case("b", 1, 1)});
  const auto lost =
      compared(report_of({made_case("a", 1, 1), unsupported_case("b")}), before).regressions;
  ASSERT_FALSE(lost.empty());
  EXPECT_EQ(lost[0].title, "s/b");
  EXPECT_EQ(lost[0].message, "is not supported now: not supported yet");
}

TEST(CaseLimits, AreJudgedCaseByCaseWorstFirst) {
  CaseResult kept = made_case("kept", 1.25, 1), near = made_case("near", 1.3, 1);
  CaseResult far = made_case("far", 2, 1), failed = failed_case("failed");
  CaseResult later = unsupported_case("later");
  for (CaseResult* one : {&kept, &near, &far, &failed, &later}) one->limits.step_time = 0.25;
  const auto broken = broken_case_limits({kept, near, far, failed, later, made_case("free", 9, 1)});
  EXPECT_EQ(titles_of(broken),
            (std::vector<std::string>{"s/failed", "s/far: step_time", "s/near: step_time"}));
  EXPECT_EQ(broken[2].message, "error +30.0 %, the suite allows 25 %");
  EXPECT_TRUE(limits_any({kept}));
  EXPECT_FALSE(limits_any({made_case("free", 9, 1)}));
}

TEST(Baseline, CallsACaseThatIsNewAChange) {
  const CheckReport before = report_of({made_case("a", 1, 1)});
  const CheckReport after = report_of({made_case("a", 1, 1), made_case("b", 1, 1, "h")});
  const BaselineComparison comparison = compared(after, before);
  EXPECT_TRUE(comparison.regressions.empty());
  ASSERT_FALSE(comparison.changes.empty());
  EXPECT_EQ(comparison.changes.back().title, "s/b");
}

TEST(Baseline, IsInOneOrderWithALineForEachRun) {
  const CheckReport one = report_of({made_case("b", 1.1, 1), made_case("a", 1.3, 1)});
  const CheckReport other = report_of({made_case("a", 1.3, 1), made_case("b", 1.1, 1)});
  const std::string text = baseline_text(one);
  EXPECT_EQ(text.substr(text.find(" \"cases\"")),
            " \"cases\": {\n"
            "  \"s/a\": {\n   \"step_time_s\": 1.3,\n   \"peak_memory_bytes\": 100.0,\n"
            "   \"measured\": {\"step_time_s\":1.0}\n  },\n"
            "  \"s/b\": {\n   \"step_time_s\": 1.1,\n   \"peak_memory_bytes\": 100.0,\n"
            "   \"measured\": {\"step_time_s\":1.0}\n  }\n }\n}\n");
  EXPECT_EQ(baseline_text(other), text);
  const auto read = read_baseline(text, "b.json", {"s"});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->cases.size(), 2u);
  EXPECT_TRUE(read->cases.contains("s/a") && read->cases.contains("s/b"));
}

TEST(Baseline, OfOtherSuitesIsRefused) {
  CaseResult other = made_case("a", 1, 1);
  other.suite = "t";
  const auto read = read_baseline(baseline_text(report_of({std::move(other)})), "b.json", {"s"});
  ASSERT_FALSE(read);
  EXPECT_EQ(to_string(read.error().front()),
            "b.json: summary: is of other suites: t; checked: s (name the baseline of these "
            "suites, or a new file with --update)");
}

TEST(Baseline, RefusesWhatIsNotOne) {
  for (const char* text :
       {"", "[]", "{}", R"({"stepcast_baseline": 2, "summary": {}, "cases": {}})",
        R"({"stepcast_validation_baseline": 1})",
        R"({"stepcast_baseline": 1, "summary": {"all": {"x": 1}}, "cases": {}})",
        R"({"stepcast_baseline": 1, "summary": {}, "cases": {"s/a": 3}})"}) {
    EXPECT_FALSE(read_baseline(text, "b.json", {"s"})) << text;
  }
}

}  // namespace
}  // namespace stepcast
