// SPDX-License-Identifier: Apache-2.0
#include "validate/validation.h"

#include <gtest/gtest.h>

namespace stepcast {
namespace {

Prediction forecast() {
  Prediction out;
  out.step_time = Seconds(1.1);
  out.step_time_low = Seconds(0.9);
  out.step_time_high = Seconds(1.3);
  out.tokens_per_s = 100;
  out.bubble_fraction = 0.25;
  out.peak_memory = 1010;
  out.peak_device = 1300;
  return out;
}

MeasuredRun run() {
  MeasuredRun out;
  out.periods = 9;
  out.step_time = {1, 0.95, 1.2};
  out.bubble_fraction = {0.2, 0.15, 0.3};
  out.tokens_per_s = 110;
  out.peak_memory = 1000;
  out.numerics = Numerics{1e-7, 2e-6};
  return out;
}

Validation with_limit(const char* text, const MeasuredRun& measured) {
  const auto tolerance = parse_validation_tolerance(text);
  EXPECT_TRUE(tolerance);
  return compare(forecast(), measured, {}, {NumericsLimits{}, {*tolerance}});
}

TEST(Validation, ErrorsAreOfTheMeasuredFigure) {
  const Validation validation = compare(forecast(), run(), {}, {});
  EXPECT_NEAR(*validation.figure("step_time_s")->error, 0.1, 1e-12);
  EXPECT_NEAR(*validation.figure("peak_memory_bytes")->error, 0.01, 1e-12);
  EXPECT_NEAR(*validation.figure("tokens_per_s")->error, -10.0 / 110, 1e-12);
  // The error of a fraction is the difference: a bubble of zero has no relative error.
  EXPECT_NEAR(*validation.figure("bubble_fraction")->error, 0.05, 1e-12);
  EXPECT_EQ(validation.figure("mfu"), nullptr);  // no peak
  EXPECT_TRUE(validation.covered);
  EXPECT_TRUE(validation.passed());
}

TEST(Validation, PassesInsideItsTolerancesOnly) {
  EXPECT_TRUE(with_limit("step_time=0.11", run()).passed());
  const Validation beyond = with_limit("step_time=0.09", run());
  ASSERT_EQ(beyond.broken.size(), 1u);
  EXPECT_EQ(beyond.broken.front().title, "step_time");
  EXPECT_EQ(beyond.broken.front().message, "step time is off by +10.00 %, beyond the limit of 9 %");
  EXPECT_FALSE(with_limit("peak_memory=0.005", run()).passed());
  EXPECT_FALSE(with_limit("bubble_fraction=0.04", run()).passed());
  MeasuredRun slow = run();
  slow.step_time.median = 2;  // too fast a forecast is as wrong
  EXPECT_FALSE(with_limit("step_time=0.4", slow).passed());
  EXPECT_FALSE(compare(forecast(), slow, {}, {}).covered);
}

TEST(Validation, FailsOnWhatALimitNeedsAndNobodyMeasured) {
  MeasuredRun without = run();
  without.peak_memory = 0;
  EXPECT_FALSE(with_limit("peak_memory=0.5", without).passed());
}

TEST(Validation, FailsOnNumericsThatDifferOrWereNotCompared) {
  MeasuredRun wrong = run();
  wrong.numerics = Numerics{1e-7, 2e-5};
  const Validation validation = compare(forecast(), wrong, {}, {});
  ASSERT_EQ(validation.broken.size(), 1u);
  EXPECT_EQ(validation.broken.front().title, "numerics: parameters");
  wrong.numerics.reset();
  EXPECT_FALSE(compare(forecast(), wrong, {}, {}).passed());
  EXPECT_TRUE(compare(forecast(), wrong, {}, {.numerics = {}, .tolerances = {}}).passed());
}

TEST(Validation, InBf16JudgesTheLossAlone) {
  MeasuredRun rounded = run();
  rounded.numerics = Numerics{8e-3, std::nullopt};
  const ValidationLimits limits{numerics_limits(DataType::kBf16), {}};
  EXPECT_TRUE(compare(forecast(), rounded, {}, limits).passed());
  EXPECT_FALSE(compare(forecast(), rounded, {}, {}).passed());  // of fp32: parameters are missing
  rounded.numerics->loss_relative_error = 1.1e-2;
  const Validation beyond = compare(forecast(), rounded, {}, limits);
  ASSERT_EQ(beyond.broken.size(), 1u);
  EXPECT_EQ(beyond.broken.front().title, "numerics: loss");
}

TEST(Validation, SetsWhatTheDriverCountsBesideTheTensors) {
  EXPECT_EQ(compare(forecast(), run(), {}, {}).figure("device_used_bytes"), nullptr);
  EXPECT_FALSE(with_limit("device_memory=0.5", run()).passed());  // nobody measured it
  MeasuredRun on_gpu = run();
  on_gpu.device_used = 1290;
  EXPECT_TRUE(with_limit("device_memory=0.02", on_gpu).passed());
  on_gpu.device_used = 1400;  // 1300 are forecast: 1010 of tensors, and what is beside them
  EXPECT_FALSE(with_limit("device_memory=0.02", on_gpu).passed());
}

TEST(Validation, OperationsMeetByNameAndPhaseTheLargestDifferenceFirst) {
  const auto price = [](const char* signature, const char* name, Phase phase, double total) {
    return OperationPrice{signature, name, phase, 2, Seconds(total), Provenance::kMeasured};
  };
  const auto took = [](const char* signature, const char* name, Phase phase, double total) {
    return OperationTime{signature, name, phase, 2, Seconds(total / 2), Seconds(total)};
  };
  MeasuredRun measured = run();
  measured.operations = {
      took("a", "qkv", Phase::kForward, 1.0), took("b", "qkv", Phase::kForward, 2.0),
      took("a", "qkv", Phase::kRecompute, 5.0), took("c", "norm", Phase::kForward, 0.5)};
  const Validation validation =
      compare(forecast(), measured,
              {price("a", "qkv", Phase::kForward, 1.5), price("b", "qkv", Phase::kForward, 1.2),
               price("a", "qkv", Phase::kRecompute, 4.0)},
              {});
  ASSERT_EQ(validation.operations.size(), 3u);  // differences 1, 0.5, 0.3
  EXPECT_EQ(validation.operations[0].phase, Phase::kRecompute);
  EXPECT_EQ(validation.operations[1].name, "norm");
  EXPECT_EQ(*validation.operations[1].error, -1);  // not forecast at all
  EXPECT_NEAR(validation.operations[2].predicted.value(), 2.7, 1e-12);
  EXPECT_NEAR(*validation.operations[2].error, -0.1, 1e-12);
  EXPECT_EQ(validation.operations[2].measured_calls, 4);
}

TEST(ValidationTolerance, RefusesWhatIsNoFigureOfOneRun) {
  for (const char* text : {"step_time", "step_time.bias=0.1", "mfu=0.1", "tag:step_time=0.1",
                           "step_time=-0.1", "step_time=much"}) {
    EXPECT_FALSE(parse_validation_tolerance(text)) << text;
  }
}

}  // namespace
}  // namespace stepcast
