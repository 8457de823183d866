// SPDX-License-Identifier: Apache-2.0
#include "validate/align.h"

#include <gtest/gtest.h>

#include "predict/prediction.h"
#include "validate/made_case_scenario.h"
#include "validate/made_cases.h"

namespace stepcast {
namespace {

using stepcast::testing::made_case_scenario;

double time_of(const CaseFigures& measured, const Convention& convention = {}) {
  const auto time = measured_step_time(measured, made_case_scenario(), convention);
  EXPECT_TRUE(time && *time);
  return time && *time ? **time : 0;
}

TEST(MeasuredStepTime, TakesTheStatedTimeBeforeAnyThroughput) {
  EXPECT_EQ(time_of({.step_time_s = 3, .tokens_per_s_per_gpu = 1, .mfu = 0.1}), 3);
}

TEST(MeasuredStepTime, IsTokensOverTokensPerSecond) {
  // 4 x 8 tokens on 2 GPUs at 2 tokens/s each: 32 / 4 = 8 s.
  EXPECT_DOUBLE_EQ(time_of({.tokens_per_s_per_gpu = 2, .model_tflops_per_gpu = 1}), 8);
}

TEST(MeasuredStepTime, IsFlopsOverTflopsPerGpu) {
  const double flops = model_flops(made_case_scenario()).value();
  ASSERT_GT(flops, 0);
  EXPECT_DOUBLE_EQ(time_of({.model_tflops_per_gpu = 5e-9, .mfu = 0.9}), flops / (2 * 5e3));
}

TEST(MeasuredStepTime, IsFlopsOverMfuTimesThePeakOfThePrecision) {
  const double flops = model_flops(made_case_scenario()).value();
  EXPECT_DOUBLE_EQ(time_of({.mfu = 0.5}), flops / (2 * 0.5 * 100e12));
  EXPECT_DOUBLE_EQ(time_of({.mfu = 0.5}, {.peak = {.rate = FlopsPerSecond(10e12)}}),
                   flops / (2 * 0.5 * 10e12));
}

TEST(MeasuredStepTime, TakesTheBf16PeakWhereTheConventionSaysSo) {
  Scenario scenario = made_case_scenario();
  scenario.training.precision = DataType::kFp16;
  const CaseFigures measured{.mfu = 0.5};
  const auto own = measured_step_time(measured, scenario, {});
  const auto bf16 = measured_step_time(measured, scenario, {.peak = {.bf16 = true}});
  ASSERT_TRUE(own && *own && bf16 && *bf16);
  EXPECT_DOUBLE_EQ(**own / **bf16, 2);  // 50 against 100 TFLOP/s
}

TEST(MeasuredStepTime, FailsWhenThePeakIsNotKnown) {
  Scenario scenario = made_case_scenario();
  scenario.cluster.spec.accelerator.dense_peak.clear();
  EXPECT_FALSE(measured_step_time({.mfu = 0.5}, scenario, {}));
}

TEST(MeasuredStepTime, IsAbsentWhenOnlyMemoryWasMeasured) {
  const auto time = measured_step_time({.peak_memory_bytes = 1e9}, made_case_scenario(), {});
  ASSERT_TRUE(time);
  EXPECT_FALSE(*time);
}

TEST(ConventionFlops, CountsHalfTheAttentionWhereTheSourceDoes) {
  // Attention forward: 2*2*s*heads*head_dim per token and layer; 3 x forward; halved when causal.
  const double attention = 3.0 * 32 * 4 * 8 * 2 * 8;
  const double full = convention_flops(made_case_scenario(), {}).value();
  const double causal = convention_flops(made_case_scenario(), {.causal_attention = true}).value();
  EXPECT_DOUBLE_EQ(full - causal, attention / 2);
}

TEST(ConventionFlops, LeavesTheOutputProjectionOutWhereTheSourceDoes) {
  // 3 x 2 x hidden x vocab per token.
  const double logits = 3.0 * 32 * 2 * 16 * 32;
  const double with = convention_flops(made_case_scenario(), {}).value();
  const double without = convention_flops(made_case_scenario(), {.logits = false}).value();
  EXPECT_DOUBLE_EQ(with - without, logits);
}

TEST(ConventionFlops, AddsRecomputedWorkForHardwareFlops) {
  Scenario scenario = made_case_scenario();
  scenario.layout.recompute.mode = RecomputeMode::kFull;
  EXPECT_DOUBLE_EQ(convention_flops(scenario, {.hardware_flops = true}).value(),
                   hardware_flops(scenario).value());
  EXPECT_GT(hardware_flops(scenario).value(), model_flops(scenario).value());
}

TEST(Align, ComparesTimeMemoryAndBubbleInTheirConvention) {
  Prediction prediction;
  prediction.step_time = Seconds(2);
  prediction.step_time_low = Seconds(1.8);
  prediction.step_time_high = Seconds(2.2);
  prediction.peak_memory = 100;
  prediction.peak_reserved = 120;
  prediction.peak_device = 150;
  prediction.bubble_fraction = 0.3;
  prediction.bubble_fraction_steady = 0.2;
  CaseResult result;
  result.measured = {.step_time_s = 2.5, .peak_memory_bytes = 100, .bubble_fraction = 0.25};
  align(result, made_case_scenario(), prediction,
        {.memory = Convention::Memory::kReserved, .steady_bubble = true});
  EXPECT_DOUBLE_EQ(*result.errors.step_time, -0.2);
  EXPECT_DOUBLE_EQ(*result.errors.peak_memory, 0.2);
  EXPECT_NEAR(*result.errors.bubble_fraction, -0.05, 1e-15);
  EXPECT_EQ(result.covered, false);
  EXPECT_DOUBLE_EQ(*result.predicted->tokens_per_s_per_gpu, 8);  // 32 tokens / (2 s x 2 GPUs)
  EXPECT_DOUBLE_EQ(*result.predicted->mfu, model_flops(made_case_scenario()).value() / 4 / 100e12);
}

TEST(Align, GivesNoErrorForWhatWasNotMeasured) {
  Prediction prediction;
  prediction.step_time = Seconds(2);
  CaseResult result;
  result.measured = {.peak_memory_bytes = 100};
  align(result, made_case_scenario(), prediction, {});
  EXPECT_TRUE(result.failed.empty());
  EXPECT_FALSE(result.errors.step_time);
  EXPECT_FALSE(result.covered);
  EXPECT_TRUE(result.errors.peak_memory);
}

// A run that ran out of memory contradicts a forecast that is sure of the contrary, and one that
// ran a forecast that is sure that it cannot.
TEST(Align, HoldsTheVerdictAgainstWhetherTheRunHadMemory) {
  const auto contradiction = [](bool ran_out, ByteCount low, ByteCount high) {
    CaseResult result;
    result.measured.out_of_memory = ran_out;
    Prediction prediction;
    prediction.step_time = Seconds(1);
    prediction.device_memory = 1000;
    prediction.peak_device_low = low;
    prediction.peak_device_high = high;
    align(result, made_case_scenario(), prediction, {});
    return result.contradiction;
  };
  EXPECT_EQ(contradiction(true, 800, 1000), Contradiction::kFits);
  EXPECT_EQ(contradiction(true, 900, 1001), std::nullopt);
  EXPECT_EQ(contradiction(true, 1001, 1100), std::nullopt);
  EXPECT_EQ(contradiction(false, 1001, 1100), Contradiction::kDoesNotFit);
  EXPECT_EQ(contradiction(false, 800, 1000), std::nullopt);
}

}  // namespace
}  // namespace stepcast
