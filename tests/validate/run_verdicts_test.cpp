// SPDX-License-Identifier: Apache-2.0
#include "validate/run_verdicts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "validate/made_cases.h"

namespace stepcast {
namespace {

using stepcast::testing::made_case;

constexpr RunWork kWork{8'000'000'000, 128, 4096, 8};

// A run of 7 s steps beside a forecast of 7 s.
CaseResult run_of(double measured, double spread = 0, double steps = 45) {
  CaseResult out = made_case("a", 7, measured);
  out.work = kWork;
  if (spread > 0) {
    out.measured.step_time_spread = spread;
    out.measured.steps = steps;
  }
  return out;
}

CheckReport report_of(CaseResult one) {
  CheckReport out;
  out.cases = {std::move(one)};
  out.summary = summarise(out.cases);
  return out;
}

RunVerdict verdict_on(CaseResult now, const CaseResult& before, double slower = kUsualSlower) {
  const auto baseline = read_baseline(baseline_text(report_of(before)), "b.json", {"s"});
  EXPECT_TRUE(baseline) << to_string(baseline.error());
  const auto runs = judge_runs(report_of(std::move(now)), &*baseline, slower);
  EXPECT_EQ(runs.size(), 1u);
  return runs.empty() ? RunVerdict{} : runs.front();
}

TEST(RunVerdicts, TellSlowerFasterAndAsFastByTheTolerance) {
  EXPECT_EQ(verdict_on(run_of(7), run_of(7)).state, RunState::kSame);
  EXPECT_EQ(verdict_on(run_of(7 * 1.039), run_of(7)).state, RunState::kSame);
  EXPECT_EQ(verdict_on(run_of(7 * 1.041), run_of(7)).state, RunState::kSlower);
  EXPECT_EQ(verdict_on(run_of(7 * 0.959), run_of(7)).state, RunState::kFaster);
  EXPECT_EQ(verdict_on(run_of(7 * 1.041), run_of(7), 0.05).state, RunState::kSame);
}

// A spread of s is a deviation of s / 0.6745; the median of 25 steps then scatters by
// 1.2533 / 5 of it. With s = 10 % that is 3.716 %, for two such runs 5.256 %, three times 15.77 %.
TEST(RunVerdicts, LeaveWhatTheSpreadOfBothRunsExplains) {
  const RunVerdict within = verdict_on(run_of(7 * 1.15, 0.1, 25), run_of(7, 0.1, 25));
  EXPECT_EQ(within.state, RunState::kSame);
  EXPECT_NEAR(within.allowed, 0.1577, 1e-4);
  EXPECT_EQ(verdict_on(run_of(7 * 1.16, 0.1, 25), run_of(7, 0.1, 25)).state, RunState::kSlower);
  // Four times the steps halve it.
  EXPECT_EQ(verdict_on(run_of(7 * 1.09, 0.1, 100), run_of(7, 0.1, 100)).state, RunState::kSlower);
}

TEST(RunVerdicts, TellRunsThatNeedMoreMemory) {
  const auto with_memory = [](double bytes) {
    CaseResult out = run_of(7);
    out.measured.peak_memory_bytes = bytes;
    return out;
  };
  const RunVerdict grown = verdict_on(with_memory(75e9), with_memory(52e9));
  EXPECT_TRUE(grown.larger);
  EXPECT_EQ(grown.state, RunState::kSame);
  EXPECT_EQ(grown.peak_memory_before_bytes, 52e9);
  EXPECT_FALSE(verdict_on(with_memory(1.049 * 52e9), with_memory(52e9)).larger);
  EXPECT_FALSE(verdict_on(with_memory(40e9), with_memory(52e9)).larger);
  EXPECT_FALSE(verdict_on(with_memory(75e9), run_of(7)).larger);  // nobody said what it was
}

TEST(RunVerdicts, DoNotCompareOtherWork) {
  CaseResult other = run_of(14);
  other.work->global_batch = 256;
  const RunVerdict verdict = verdict_on(other, run_of(7));
  EXPECT_EQ(verdict.state, RunState::kOtherWork);
  EXPECT_EQ(verdict.other, "global_batch is 256, was 128");
  EXPECT_FALSE(verdict.parted);
}

// The interval of the forecast of 7 s ends at 7.7 s.
TEST(RunVerdicts, RunsPartFromTheirForecastWhereTheyLeaveItsInterval) {
  EXPECT_FALSE(verdict_on(run_of(7.5), run_of(7)).parted);
  EXPECT_TRUE(verdict_on(run_of(7.8), run_of(7)).parted);
  EXPECT_FALSE(verdict_on(run_of(5), run_of(7)).parted);  // faster is no failure
  // Outside it was before, too, and as far.
  EXPECT_FALSE(verdict_on(run_of(9.1), run_of(9)).parted);
}

TEST(RunVerdicts, TakeTheLastRunOfTheSuiteWithoutABaseline) {
  CaseResult now = run_of(7.7);
  now.earlier = {{"first", {.step_time_s = 9}, kWork}, {"last", {.step_time_s = 7}, kWork}};
  const auto runs = judge_runs(report_of(now), nullptr);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].state, RunState::kSlower);
  EXPECT_EQ(runs[0].before_s, 7);
  // 128 sequences of 4096 tokens by 8 GPUs: 9362.29 tokens/s a GPU take 7 s.
  now.earlier = {{"last", {.tokens_per_s_per_gpu = 128.0 * 4096 / 8 / 7}, kWork}};
  EXPECT_NEAR(judge_runs(report_of(now), nullptr)[0].before_s, 7, 1e-9);
  now.earlier.clear();
  EXPECT_EQ(judge_runs(report_of(now), nullptr)[0].state, RunState::kFirst);
}

CaseResult run_without_memory() {
  CaseResult out = run_of(7);
  out.measured = {.out_of_memory = true};
  out.compare();
  return out;
}

TEST(RunVerdicts, ARunWithoutMemoryIsWorseThanAnyThatRan) {
  const RunVerdict verdict = verdict_on(run_without_memory(), run_of(7));
  EXPECT_EQ(verdict.state, RunState::kOutOfMemory);
  EXPECT_EQ(verdict.before_s, 7);
  CaseResult now = run_without_memory();
  now.earlier = {{"last", {.step_time_s = 7}, kWork}};
  const auto runs = judge_runs(report_of(now), nullptr);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].state, RunState::kOutOfMemory);
  now.work->global_batch = 256;
  EXPECT_EQ(judge_runs(report_of(now), nullptr).at(0).state, RunState::kOtherWork);
}

// A reviewer accepted the baseline, whatever ran before it.
TEST(RunVerdicts, ARunWithoutMemoryInTheBaselineIsAccepted) {
  CaseResult now = run_without_memory();
  now.earlier = {{"last", {.step_time_s = 7}, kWork}};
  const auto baseline = read_baseline(baseline_text(report_of(now)), "b.json", {"s"});
  ASSERT_TRUE(baseline) << to_string(baseline.error());
  EXPECT_TRUE(judge_runs(report_of(now), &*baseline).empty());
  EXPECT_TRUE(compare_with_baseline(report_of(now), *baseline).regressions.empty());
  EXPECT_EQ(verdict_on(run_of(7), run_without_memory()).state, RunState::kFirst);
}

// A later measurement is no drift of forecasts: only these move.
TEST(Baseline, ARunThatChangedIsNoDriftOfItsForecast) {
  const auto baseline = read_baseline(baseline_text(report_of(run_of(7))), "b.json", {"s"});
  ASSERT_TRUE(baseline);
  for (const double now : {6.5, 7.8}) {
    const auto drift = compare_with_baseline(report_of(run_of(now)), *baseline);
    EXPECT_TRUE(drift.regressions.empty()) << now;
    EXPECT_TRUE(drift.changes.empty()) << now;
  }
  CaseResult drifted = run_of(7.8);
  drifted.predicted->step_time_s = 7.8;
  drifted.compare();
  EXPECT_FALSE(compare_with_baseline(report_of(drifted), *baseline).regressions.empty());
}

TEST(Baseline, DoesNotCompareTheForecastsOfAnotherScenario) {
  CaseResult before = run_of(7);
  before.fingerprint = "aa";
  const auto baseline = read_baseline(baseline_text(report_of(before)), "b.json", {"s"});
  ASSERT_TRUE(baseline);
  CaseResult now = run_of(7);
  now.fingerprint = "bb";
  now.predicted->step_time_s = 8;
  now.compare();
  const auto drift = compare_with_baseline(report_of(now), *baseline);
  EXPECT_TRUE(drift.regressions.empty());
  ASSERT_EQ(drift.changes.size(), 1u);
  EXPECT_EQ(drift.changes[0].message,
            "has another scenario, so that its forecasts are not compared");
}

// One of two cases of 7 s has another scenario now. The other's forecast goes from 7 s to 8 s, so
// that the mean error of both, the old forecast of the first among them, goes from 0 to 1/14.
TEST(Baseline, OneCaseOfAnotherScenarioLeavesTheRowsOfTheOthers) {
  const auto report = [](const char* scenario, double forecast_a, double forecast_b) {
    CheckReport out;
    for (const auto& [id, forecast] : {std::pair("a", forecast_a), std::pair("b", forecast_b)}) {
      CaseResult& one = out.cases.emplace_back(made_case(id, forecast, 7, id));
      one.fingerprint = id == std::string("a") ? scenario : "bb";
      one.compare();
    }
    out.summary = summarise(out.cases);
    return out;
  };
  const auto baseline = read_baseline(baseline_text(report("aa", 7, 7)), "b.json", {"s"});
  ASSERT_TRUE(baseline) << to_string(baseline.error());
  EXPECT_TRUE(compare_with_baseline(report("cc", 9, 7), *baseline).regressions.empty());
  const auto drift = compare_with_baseline(report("cc", 9, 8), *baseline);
  ASSERT_FALSE(drift.regressions.empty());
  EXPECT_EQ(drift.regressions.front().title, "s/b");
  const bool has_row = std::ranges::any_of(drift.regressions, [](const Finding& finding) {
    return finding.title == "all: step_time.mean_abs_error" &&
           finding.message.starts_with("0.0714286, was 0");
  });
  EXPECT_TRUE(has_row);
}

}  // namespace
}  // namespace stepcast
