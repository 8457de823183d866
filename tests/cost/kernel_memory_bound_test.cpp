// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cost/kernel_cost.h"
#include "cost/memory_bound_cost.h"

namespace stepcast {
namespace {

Accelerator round_device() {
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
  const KernelCosts costs(round_device(), streaming_profile(), true);
  const MemoryBound add{MemoryBoundKind::kDropoutAdd, false, 1000000, 0, 6e6};
  EXPECT_NEAR(costs.price(add).time.value(), 2e-6 + 6e6 / 0.5e12, 1e-15);
  EXPECT_EQ(costs.price(add).curve, Curve::kMemoryBound);
}

TEST(MemoryBound, KindsTakeTheirFactorOfTheStreamingPart) {
  const KernelCosts costs(round_device(), streaming_profile(), true);
  const MemoryBound softmax{MemoryBoundKind::kSoftmax, false, 1000000, 1000, 4e6};
  EXPECT_NEAR(costs.price(softmax).time.value(), 2e-6 + 1.5 * 4e6 / 0.5e12, 1e-15);
}

TEST(MemoryBound, AnEagerChainHandsIntermediatesThroughMemory) {
  // bias + dropout + residual: fused 3 passes of 2 bytes, eager 2 + 2 + 3 passes in 3 kernels.
  const MemoryBound chain{MemoryBoundKind::kDropoutAdd, false, 1000000, 0, 6e6, 3};
  const KernelCosts fused(round_device(), streaming_profile(), true);
  const KernelCosts eager(round_device(), streaming_profile(), false);
  EXPECT_EQ(fused.price(chain).launches, 1);
  EXPECT_EQ(eager.price(chain).launches, 3);
  EXPECT_DOUBLE_EQ(eager.price(chain).traffic.value(), 14e6);
  EXPECT_NEAR(eager.price(chain).time.value(), 3 * 2e-6 + 14e6 / 0.5e12, 1e-15);
}

TEST(MemoryBound, PartialReductionsAddKernelsAndNoTraffic) {
  const MemoryBound norm{MemoryBoundKind::kNorm, true, 1000000, 1000, 6e6, 2};
  EXPECT_EQ(traffic_of(norm, false), traffic_of(norm, true));
}

}  // namespace
}  // namespace stepcast
