// SPDX-License-Identifier: Apache-2.0
#include "validate/validation_baseline.h"

#include <gtest/gtest.h>

#include "validate/made_case_scenario.h"
#include "validate/made_cases.h"

namespace stepcast {
namespace {

using stepcast::testing::made_case_scenario;

// A step of a second, forecast and measured, of a GPU with 100 bytes in use.
Validation validation_of(double predicted_s, double measured_s) {
  Validation out;
  out.predicted.time.compute = Seconds(0.75 * predicted_s);
  out.predicted.time.bubble = Seconds(0.25 * predicted_s);
  out.measured.time.compute = Seconds(measured_s - 0.25);
  out.measured.time.bubble = Seconds(0.25);
  out.figures = {{"step_time_s", predicted_s, measured_s, 0.0},
                 {"peak_memory_bytes", 100, 100, 0.0},
                 {"bubble_fraction", 0.25, 0.25, 0.0}};
  return out;
}

const RunFacts kRun{"cpu", {}};

Scenario scenario_on(const std::string& device, std::int64_t cores) {
  Scenario out = made_case_scenario();
  out.cluster.spec.accelerator.title = device;
  out.cluster.spec.accelerator.cores = cores;
  return out;
}

ValidationBaseline recorded(const Validation& validation,
                            const Scenario& scenario = scenario_on("P", 2)) {
  auto out =
      read_validation_baseline(validation_baseline_text(scenario, kRun, validation), "b.json");
  EXPECT_TRUE(out) << to_string(out.error());
  return out ? *out : ValidationBaseline{};
}

std::vector<std::string> broken(const BaselineDrift& drift) {
  std::vector<std::string> out;
  for (const Finding& finding : drift.broken) out.push_back(finding.title);
  return out;
}

using Titles = std::vector<std::string>;

Tolerance limit(const std::string& text) {
  const auto parsed = parse_drift_limit(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : Tolerance{};
}

TEST(ValidationBaseline, OfTheSameRunShowsNoDrift) {
  const Validation validation = validation_of(1, 1.25);
  const BaselineDrift drift = drift_from(recorded(validation), validation, {});
  EXPECT_TRUE(drift.broken.empty());
  EXPECT_EQ(drift.rows.size(), 10u);  // of each side three figures and two parts of the time
  for (const DriftRow& row : drift.rows) {
    EXPECT_EQ(row.change, 0) << row.key;
    EXPECT_EQ(row.state, DriftState::kKept) << row.key;
  }
}

TEST(ValidationBaseline, IsBrokenByASlowerRunAndNamesThePartThatGrew) {
  const BaselineDrift drift = drift_from(recorded(validation_of(1, 1)), validation_of(1, 1.25), {});
  ASSERT_EQ(broken(drift), Titles{"measured: step time"});
  EXPECT_EQ(
      drift.broken.front().message,
      "+25.0 % against the baseline, beyond the limit of 10 %; most of all compute (+250 ms)");
}

// Others used 3.1 of four processors for a while: a slower step says nothing, and more memory does.
TEST(ValidationBaseline, SaysNothingOfTimesOnABusyMachine) {
  const ValidationBaseline before = recorded(validation_of(1, 1));
  Validation now = validation_of(1, 1.25);
  now.measured.load = MachineLoad{"host", {.span_s = 40, .busy_s = 40, .own_s = 9}};
  now.figures[2].measured = 0.5;  // waiting for others
  now.drift = drift_from(before, now, {});
  EXPECT_EQ(broken(*now.drift), Titles{});
  ASSERT_EQ(now.drift->inconclusive.size(), 2U);
  EXPECT_EQ(now.drift->inconclusive[0].title, "measured: step time");
  EXPECT_TRUE(now.inconclusive() && now.passed() && !now.regressed());

  now.figures[1].measured = 150;
  now.drift = drift_from(before, now, {});
  EXPECT_EQ(broken(*now.drift), Titles{"measured: peak memory"});
  EXPECT_FALSE(now.inconclusive() || now.passed());

  now = validation_of(1.25, 1);  // a forecast does not depend on the machine's load
  now.measured.load = MachineLoad{"host", {.span_s = 40, .busy_s = 40, .own_s = 9}};
  EXPECT_EQ(broken(drift_from(before, now, {})), Titles{"predicted: step time"});

  now = validation_of(1, 1.25);
  now.measured.load = MachineLoad{"host", {.span_s = 40, .busy_s = 40, .own_s = 39.5}};
  EXPECT_EQ(broken(drift_from(before, now, {})), Titles{"measured: step time"});
}

TEST(ValidationBaseline, CallsAFasterRunBetter) {
  const BaselineDrift drift = drift_from(recorded(validation_of(1, 1.25)), validation_of(1, 1), {});
  EXPECT_TRUE(drift.broken.empty());
  EXPECT_EQ(drift.rows.size(), 10u);
  for (const DriftRow& row : drift.rows) {
    const bool step = !row.predicted && row.key == "step_time_s";
    EXPECT_EQ(row.state, step ? DriftState::kBetter : DriftState::kKept) << row.key;
  }
}

TEST(ValidationBaseline, IsBrokenByAForecastThatMovesEitherWay) {
  EXPECT_EQ(broken(drift_from(recorded(validation_of(1, 1)), validation_of(0.75, 1), {})),
            Titles{"predicted: step time"});
  EXPECT_EQ(broken(drift_from(recorded(validation_of(1, 1)), validation_of(1.25, 1), {})),
            Titles{"predicted: step time"});
}

TEST(ValidationBaseline, LimitsAreOfOneSideOrOfBothAndTheLastCounts) {
  const ValidationBaseline before = recorded(validation_of(1, 1));
  const Validation now = validation_of(1.25, 1.25);
  EXPECT_EQ(broken(drift_from(before, now, {limit("step_time=0.3")})), Titles{});
  EXPECT_EQ(broken(drift_from(before, now, {limit("measured:step_time=0.3")})),
            Titles{"predicted: step time"});
  EXPECT_EQ(broken(drift_from(before, now, {limit("step_time=0.3"), limit("step_time=0.2")})),
            (Titles{"predicted: step time", "measured: step time"}));
  // Exactly the limit is within it.
  EXPECT_EQ(broken(drift_from(before, now, {limit("step_time=0.25")})), Titles{});
}

TEST(ValidationBaseline, TakesBubblesAsDifferencesAndMissesWhatIsGone) {
  Validation before = validation_of(1, 1), now = validation_of(1, 1);
  now.figures[2].measured = 0.3125;  // 6.25 points more, 25 % more
  EXPECT_EQ(broken(drift_from(recorded(before), now, {})), Titles{"measured: bubble"});
  EXPECT_EQ(broken(drift_from(recorded(before), now, {limit("bubble_fraction=0.07")})), Titles{});
  now = before;
  before.figures.push_back({"device_used_bytes", 100, 120, 0.2});
  EXPECT_EQ(broken(drift_from(recorded(before), now, {})),
            (Titles{"predicted: memory of the GPU", "measured: memory of the GPU"}));
}

TEST(ValidationBaseline, IsTheSameTextWhicheverWayItIsMade) {
  const Validation validation = validation_of(1, 1.25);
  const std::string text = validation_baseline_text(scenario_on("P", 2), kRun, validation);
  EXPECT_EQ(text, validation_baseline_text(scenario_on("P", 2), kRun, validation));
  EXPECT_NE(text.find("\n \"machine\": {\"device\":\"P\",\"cores\":2},\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\n  \"layout.dp\": 2,\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  \"step_time_s\": 1.25,\n"), std::string::npos) << text;
}

TEST(ValidationBaseline, TellsWhichSettingIsAnother) {
  const ValidationBaseline before = recorded(validation_of(1, 1));
  EXPECT_TRUE(other_run(before, scenario_on("Q", 8), kRun, "b.json").empty());
  Scenario other = made_case_scenario();
  other.training.global_batch = 8;
  const Errors errors = other_run(before, other, {"cuda", {}}, "b.json");
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].path, "backend");
  EXPECT_EQ(errors[1].path, "training.global_batch");
  EXPECT_EQ(other_run(before, made_case_scenario(), {"cpu", RankId(0)}, "b.json").size(), 1u);
}

TEST(ValidationBaseline, TellsWhichMachineIsAnother) {
  const ValidationBaseline before = recorded(validation_of(1, 1));
  EXPECT_EQ(other_machine(before, scenario_on("P", 2).cluster.spec.accelerator), "");
  EXPECT_EQ(other_machine(before, scenario_on("P", 4).cluster.spec.accelerator),
            "recorded on 'P' with 2 cores, this machine is 'P' with 4 cores");
  EXPECT_NE(other_machine(before, scenario_on("Q", 2).cluster.spec.accelerator), "");
  // GPUs have no cores.
  const ValidationBaseline gpu = recorded(validation_of(1, 1), scenario_on("G", 0));
  EXPECT_EQ(other_machine(gpu, scenario_on("G", 0).cluster.spec.accelerator), "");
}

TEST(ValidationBaseline, RefusesWhatIsNotOne) {
  for (const char* text :
       {"", "[]", "{}", R"({"stepcast_validation_baseline": 2})", R"({"stepcast_baseline": 1})",
        R"({"stepcast_validation_baseline": 1, "machine": {"device": "P"}, "run": 3,
            "predicted": {}, "measured": {}})",
        R"({"stepcast_validation_baseline": 1, "machine": {"device": "P"}, "run": {},
            "predicted": {"step_time": 1}, "measured": {}})"}) {
    EXPECT_FALSE(read_validation_baseline(text, "b.json")) << text;
  }
}

TEST(ValidationBaseline, RefusesWhatIsNoLimit) {
  for (const char* text : {"step_time", "step_time=-0.1", "mfu=0.1", "elsewhere:step_time=0.1"}) {
    const auto parsed = parse_drift_limit(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().front().path, "--drift");
  }
}

}  // namespace
}  // namespace stepcast
