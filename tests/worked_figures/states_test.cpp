// SPDX-License-Identifier: Apache-2.0
// docs/worked-examples.md, "States in memory": P parameters, 16 P bytes in mixed precision.
#include <gtest/gtest.h>

#include "cluster/accelerator.h"
#include "worked_figures/worked_scenarios.h"

namespace stepcast {
namespace {

using testing::gigabytes;
using testing::kGB;
using testing::states;

Accelerator accelerator(const std::string& name) {
  auto found = find_accelerator(name, testing::source_folders().topologies);
  EXPECT_TRUE(found) << to_string(found.error());
  return found ? *found : Accelerator{};
}

// 2 P.
TEST(WorkedStates, WeightsOf7And13And70BillionAre14And26And140GB) {
  EXPECT_DOUBLE_EQ(gigabytes(states(7e9).parameters), 14);
  EXPECT_DOUBLE_EQ(gigabytes(states(13e9).parameters), 26);
  EXPECT_DOUBLE_EQ(gigabytes(states(70e9).parameters), 140);
}

// 16 P; 156 GB are the 12 P of the optimizer alone.
TEST(WorkedStates, AdamFor13BillionTakes208GBNotThe156OfItsOptimizer) {
  const StateBytes all = states(13e9);
  EXPECT_DOUBLE_EQ(gigabytes(all.total()), 208);
  EXPECT_DOUBLE_EQ(gigabytes(all.optimizer), 156);
  EXPECT_EQ(all.total() - all.optimizer, all.parameters + all.gradients);
}

// 16 P > memory; half of it, or 4 P beside a host that holds 12 P, or 2+2+4+1+1 bytes with 8-bit
// moments, do fit.
TEST(WorkedStates, OneB200DoesNotHold13BillionUnlessSharded) {
  const ByteCount memory = accelerator("b200-sxm6-180g").memory;
  const StateBytes all = states(13e9);
  EXPECT_LT(memory, 192 * kGB);
  EXPECT_GT(all.total(), 192 * kGB);
  EXPECT_LT(states(13e9, 3, 2).total(), memory);
  EXPECT_LT(all.total() - all.optimizer, memory);
  const ByteCount moments_in_fp32 = 8 * 13'000'000'000, moments_in_8_bit = 2 * 13'000'000'000;
  EXPECT_LT(all.total() - moments_in_fp32 + moments_in_8_bit, memory);
}

// (2 + 2 + 12) P / 80e9 = 14 exactly: nothing is left for activations.
TEST(WorkedStates, SeventyBillionFill14DevicesToTheLastByte) {
  const StateBytes all = states(70e9);
  EXPECT_DOUBLE_EQ(gigabytes(all.parameters), 140);
  EXPECT_DOUBLE_EQ(gigabytes(all.gradients), 140);
  EXPECT_DOUBLE_EQ(gigabytes(all.optimizer), 840);
  EXPECT_DOUBLE_EQ(static_cast<double>(all.total()) / (80 * kGB), 14);
  // The driver reports slightly less than 85e9 bytes per device, so 14 of them leave a few GB each
  // beside the states.
  const double left = 14 * gigabytes(accelerator("h100-sxm5-80g").memory) - 1120;
  EXPECT_GT(left, 0);
  EXPECT_LT(left / 14, 5);
}

// 64 x 80 GB.
TEST(WorkedStates, SixtyFourDevicesOf80GBHave5120GB) {
  const Scenario scenario = testing::run_of({.cluster = "dgx-h100", .gpus = 64, .global_batch = 8});
  EXPECT_DOUBLE_EQ(static_cast<double>(scenario.cluster.gpus()) * 80 * kGB, 5.12e12);
  EXPECT_EQ(scenario.cluster.spec.nodes, 8);
}

// 4 P + 4 P + 8 P; without gradients 12 P.
TEST(WorkedStates, SevenBillionInFp32Take112GBAnd84WithoutGradients) {
  const StateBytes all = states(7e9, 0, 1, "native", "fp32");
  EXPECT_DOUBLE_EQ(gigabytes(all.parameters), 28);
  EXPECT_DOUBLE_EQ(gigabytes(all.optimizer), 56);
  EXPECT_DOUBLE_EQ(gigabytes(all.gradients), 28);
  EXPECT_DOUBLE_EQ(gigabytes(all.total()), 112);
  const ByteCount without_gradients = all.parameters + all.optimizer;
  EXPECT_GT(without_gradients, 80 * kGB);
  EXPECT_LT(without_gradients, accelerator("a100-sxm4-80g").memory);  // 79.15 GiB
}

// 12 P without gradients, 16 P with them.
TEST(WorkedStates, ParametersAndOptimizerOf1500MillionAre18GB) {
  const StateBytes all = states(1.5e9, 0, 1, "native", "fp32");
  EXPECT_DOUBLE_EQ(gigabytes(all.parameters + all.optimizer), 18);
  EXPECT_DOUBLE_EQ(gigabytes(all.total()), 24);
}

// 80e9 / 16: the states of 5 billion parameters fit to the byte, one more does not.
TEST(WorkedStates, An80GBDeviceHoldsTheStatesOf5Billion) {
  EXPECT_DOUBLE_EQ(gigabytes(states(3e9).total()), 48);
  EXPECT_LE(states(5e9).total(), 80 * kGB);
  EXPECT_GT(states(5e9 + 1).total(), 80 * kGB);
}

// 12 P, 16 P.
TEST(WorkedStates, Of175BillionTheOptimizerIs2100And2800InAll) {
  EXPECT_DOUBLE_EQ(gigabytes(states(175e9).optimizer), 2100);
  EXPECT_DOUBLE_EQ(gigabytes(states(175e9).total()), 2800);
}

// 2+2+4+8 against 4+4+8: what mixed precision halves is activations, not states.
TEST(WorkedStates, MixedPrecisionKeeps16BytesPerParameter) {
  EXPECT_EQ(states(1e6).total(), states(1e6, 0, 1, "native", "fp32").total());
  EXPECT_EQ(states(1e6).total(), 16'000'000);
}

// P / 64 of 175 billion on the 8 x 8 ranks of one replica; 1,024 GPUs make 16 replicas.
TEST(WorkedStates, Of175BillionOn8x8RanksEachHolds2734Million) {
  const Scenario scenario = testing::run_of({.gpus = 1024, .tp = 8, .pp = 8, .global_batch = 16});
  EXPECT_EQ(scenario.layout.dp, 16);
  const double share = 175e9 / static_cast<double>(scenario.layout.tp * scenario.layout.pp);
  EXPECT_NEAR(share / 1e9, 2.734, 0.0005);
  EXPECT_NEAR(gigabytes(states(share).parameters), 5.47, 0.005);
}

// 12 P and 16 P (18 P with fp32 gradients) of 2.734 billion, beside 40 GB of activations; ZeRO-1
// over 16 ranks: (4 + 12/16) P, and (6 + 12/16) P.
TEST(WorkedStates, OfThoseRanksNeitherStatesNorSumFit80GBWithoutZero) {
  const double share = 175e9 / 64;
  const StateBytes half = states(share), full = states(share, 0, 1, "megatron");
  EXPECT_NEAR(gigabytes(half.optimizer), 32.8, 0.05);
  EXPECT_NEAR(gigabytes(half.total()), 43.75, 0.005);
  EXPECT_NEAR(gigabytes(full.total()), 49.2, 0.05);
  const double activations = 40;
  EXPECT_GT(gigabytes(half.total()) + activations, 80);
  EXPECT_NEAR(gigabytes(full.total()) + activations, 89.2, 0.05);
  EXPECT_NEAR(gigabytes(states(share, 1, 16).total()), 13.0, 0.05);
  EXPECT_NEAR(gigabytes(states(share, 1, 16, "megatron").total()), 18.5, 0.05);
}

}  // namespace
}  // namespace stepcast
