// SPDX-License-Identifier: Apache-2.0
// Traces without marks of steps: a step is found by what the trace repeats.
#include <gtest/gtest.h>

#include <string>

#include "core/each.h"
#include "diagnose/made_trace.h"
#include "report/diagnosis_report.h"

namespace stepcast::testing {
namespace {

Scenario small_scenario(const char* layout) {
  return scenario_from(std::string(R"({"stepcast": 1, "model": "llama-3.1-8b",
      "cluster": "dgx-h100x1", "training": {"framework": "megatron", "global_batch": 16,
      "sequence_length": 4096}, "layout": )") +
                       layout + "}");
}

double length_us(const Trace& trace) {
  return trace.steps.front().end_us - trace.steps.front().begin_us;
}

// So many steps one after the other without their marks, and before them the second half of one.
Trace repeated(const Trace& step, int times) {
  Trace out = step;
  out.steps.clear();
  out.works.clear();
  const double length = length_us(step), middle = step.steps.front().begin_us + length / 2;
  for (int i = 0; i <= times; ++i) {
    for (TraceWork work : step.works) {
      if (i == 0 && work.begin_us < middle) continue;
      work.begin_us += i * length;
      work.end_us += i * length;
      out.works.push_back(work);
    }
  }
  return out;
}

bool notes_say(const Diagnosis& diagnosis, const std::string& words) {
  for (const std::string& note : diagnosis.notes) {
    if (note.find(words) != std::string::npos) return true;
  }
  return false;
}

TEST(StepRepetition, FindsTheStepsOfATraceWithoutMarks) {
  for (const char* layout : each_of(
           std::vector<const char*>{R"({"tp": 2})", R"({"tp": 2, "pp": 2})", R"({"zero": 1})"})) {
    const Scenario scenario = small_scenario(layout);
    const Prediction prediction = traced_prediction(scenario);
    const Trace step = forecast_trace(scenario);
    const auto out = diagnose(scenario, prediction, step, {repeated(step, 3)});
    ASSERT_TRUE(out) << to_string(out.error());
    EXPECT_EQ(out->steps_from, StepSource::kRepetition) << layout;
    EXPECT_TRUE(notes_say(*out, "no ProfilerStep marks")) << layout;
    EXPECT_NEAR(out->measured_s, length_us(step) * 1e-6, 1e-3 * out->measured_s) << layout;
    EXPECT_GE(out->step_lengths_s.size(), 2U) << layout;
  }
}

// Micro-batches repeat, and what the optimizer runs once tells that they are no steps.
TEST(StepRepetition, MicroBatchesAreNoSteps) {
  const Scenario scenario = small_scenario(R"({"tp": 2, "micro_batch": 1})");
  const Prediction prediction = traced_prediction(scenario);
  const Trace step = forecast_trace(scenario);
  Trace once = step;
  once.steps.clear();
  const auto out = diagnose(scenario, prediction, step, {once});
  ASSERT_TRUE(out) << to_string(out.error());
  EXPECT_EQ(out->steps_from, StepSource::kWhole);
  EXPECT_TRUE(notes_say(*out, "repeats nothing"));
}

TEST(StepRepetition, AWholeTraceIsOneStepWhereThatIsAsked) {
  const Scenario scenario = small_scenario(R"({"tp": 2})");
  const Prediction prediction = traced_prediction(scenario);
  const Trace step = forecast_trace(scenario);
  DiagnoseRules rules;
  rules.as_one_step = true;
  const auto out = diagnose(scenario, prediction, step, {repeated(step, 3)}, rules);
  ASSERT_TRUE(out) << to_string(out.error());
  EXPECT_EQ(out->steps_from, StepSource::kWhole);
  EXPECT_NEAR(out->measured_s, 3.5 * length_us(step) * 1e-6, 0.3 * length_us(step) * 1e-6);
  EXPECT_TRUE(notes_say(*out, "counts as one step"));
}

}  // namespace
}  // namespace stepcast::testing
