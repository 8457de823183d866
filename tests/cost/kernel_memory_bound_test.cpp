// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cost/kernel_cost.h"
#include "cost/memory_bound_cost.h"
#include "operation/gradient_work.h"
#include "operation/operation.h"
#include "operation/phase.h"
#include "operation/steps.h"

namespace stepcast {
namespace {

Accelerator streaming_device() {
  Accelerator out;
  out.name = "round";
  out.sm_count = 100;
  out.memory_bandwidth = BytesPerSecond(1e12);
  out.dense_peak[DataType::kBf16] = FlopsPerSecond(100e12);
  return out;
}

Profile streaming_profile() {
  Profile profile;
  profile.memory.fraction = 0.5;
  profile.memory.overhead_s = 2e-6;
  profile.memory.kind_factor[static_cast<std::size_t>(MemoryBoundKind::kSoftmax)] = 1.5;
  return profile;
}

TEST(MemoryBound, StreamsItsBytesAfterAFixedPart) {
  const KernelCosts costs(streaming_device(), streaming_profile(), KernelStyle::kFused);
  const MemoryBound add{MemoryBoundKind::kDropoutAdd, false, 1000000, 0, 6e6};
  EXPECT_NEAR(costs.price(add).time.value(), 2e-6 + 6e6 / 0.5e12, 1e-15);
  EXPECT_EQ(costs.price(add).curve, Curve::kMemoryBound);
}

TEST(MemoryBound, KindsTakeTheirFactorOfTheStreamingPart) {
  const KernelCosts costs(streaming_device(), streaming_profile(), KernelStyle::kFused);
  const MemoryBound softmax{MemoryBoundKind::kSoftmax, false, 1000000, 1000, 4e6};
  EXPECT_NEAR(costs.price(softmax).time.value(), 2e-6 + 1.5 * 4e6 / 0.5e12, 1e-15);
}

TEST(MemoryBound, StepsMoveTheirOwnBytesInKernelsOfTheirOwn) {
  MemoryBound chain{MemoryBoundKind::kActivation, true, 1000000, 0, 10e6, 3, 18e6};
  Profile profile = streaming_profile();
  const auto kind = static_cast<std::size_t>(MemoryBoundKind::kActivation);
  profile.memory.step_factor[kind] = 1.25;
  profile.memory.kind_factor[kind] = 1.5;
  profile.memory.backward_factor[kind] = 2;
  const KernelCosts fused(streaming_device(), profile, KernelStyle::kFused);
  const KernelCosts steps(streaming_device(), profile, KernelStyle::kInSteps);
  EXPECT_EQ(fused.price(chain).launches, 1);
  EXPECT_NEAR(fused.price(chain).time.value(), 2e-6 + 3 * 10e6 / 0.5e12, 1e-15);
  EXPECT_EQ(steps.price(chain).launches, 3);
  EXPECT_DOUBLE_EQ(steps.price(chain).traffic.value(), 18e6);
  EXPECT_NEAR(steps.price(chain).time.value(), 3 * 2e-6 + 1.25 * 18e6 / 0.5e12, 1e-15);
  // Work that is one kernel anyhow.
  chain.bytes_in_steps = 0;
  EXPECT_DOUBLE_EQ(steps.price(chain).traffic.value(), 10e6);
  EXPECT_NEAR(steps.price(chain).time.value(), 3 * 2e-6 + 3 * 10e6 / 0.5e12, 1e-15);
}

// Megatron's softmax where rows or heads do not fit its kernel: eager operators.
TEST(MemoryBound, NoCompilerJoinsTheStepsOfASoftmax) {
  const KernelCosts fused(streaming_device(), streaming_profile(), KernelStyle::kFused);
  const MemoryBound steps{MemoryBoundKind::kSoftmax, false, 1000000, 1000, 4e6, 5};
  EXPECT_EQ(fused.price(steps).launches, 5);
  const MemoryBound kernel{MemoryBoundKind::kSoftmax, false, 1000000, 1000, 4e6, 1};
  EXPECT_EQ(fused.price(kernel).launches, 1);
}

TEST(MemoryBound, BackwardHasAFactorOfItsOwn) {
  Profile profile = streaming_profile();
  profile.memory.backward_factor[static_cast<std::size_t>(MemoryBoundKind::kNorm)] = 1.5;
  const KernelCosts costs(streaming_device(), profile, KernelStyle::kFused);
  MemoryBound norm{MemoryBoundKind::kNorm, false, 1000000, 1000, 4e6};
  EXPECT_NEAR(costs.price(norm).time.value(), 2e-6 + 4e6 / 0.5e12, 1e-15);
  norm.backward = true;
  EXPECT_NEAR(costs.price(norm).time.value(), 2e-6 + 1.5 * 4e6 / 0.5e12, 1e-15);
}

TEST(MemoryBound, CopiesOfUnitsCostFrameworksAlone) {
  const Operation copy{"copy", Phase::kForward, UnitCopy{false, 1000, 4e6}, {}, {}};
  const KernelCosts framework(streaming_device(), streaming_profile(), KernelStyle::kFused);
  EXPECT_TRUE(framework.runs(copy));
  EXPECT_NEAR(framework.price(copy).time.value(), 2e-6 + 4e6 / 0.5e12, 1e-15);
  EXPECT_FALSE(KernelCosts(streaming_device(), streaming_profile(), KernelStyle::kOwn).runs(copy));
}

// Bytes of an element in bf16, as PyTorch's kernels read and write them one after the other.
TEST(Steps, MoveWhatTheirKernelsReadAndWrite) {
  EXPECT_EQ(norm_steps(Norm::kRmsNorm, false, 2).bytes, 36);
  EXPECT_EQ(norm_steps(Norm::kRmsNorm, true, 2).bytes, 92);
  EXPECT_EQ(norm_steps(Norm::kRmsNorm, false, 4).bytes, 28);  // no casts in fp32
  EXPECT_EQ(norm_steps(Norm::kRmsNorm, true, 4).bytes, 92);
  EXPECT_EQ(norm_steps(Norm::kLayerNorm, true, 2).bytes, 10);
  EXPECT_EQ(activation_steps(Mlp::kSwiglu, false, 2).bytes, 10);
  EXPECT_EQ(activation_steps(Mlp::kSwiglu, true, 2).bytes, 18);
  EXPECT_EQ(activation_steps(Mlp::kGelu, true, 2).bytes, 6);
  EXPECT_EQ(rotary_steps(2).bytes, 24);
  EXPECT_EQ(residual_steps(true, 2).bytes, 11);
}

}  // namespace
}  // namespace stepcast
