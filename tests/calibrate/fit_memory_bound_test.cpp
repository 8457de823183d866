// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_memory_bound.h"

#include <gtest/gtest.h>

#include <vector>

#include "cost/memory_bound_cost.h"

namespace stepcast {
namespace {

constexpr double kOverhead_s = 2e-6;

Accelerator device() {
  Accelerator out;
  out.memory_bandwidth = BytesPerSecond(3e12);
  return out;
}

MemoryBound kernel(MemoryBoundKind kind, bool backward, double bytes) {
  return {kind, backward, static_cast<std::int64_t>(bytes / 2), 0, bytes};
}

// Kernels of a law that the form can hold: so long for each byte, by kind and pass.
std::vector<TimedKernel> kernels_of_a_law() {
  struct Law {
    MemoryBoundKind kind;
    bool backward;
    double bytes_per_s;
  };
  std::vector<TimedKernel> out;
  for (const Law& law :
       {Law{MemoryBoundKind::kDropoutAdd, false, 2.4e12}, Law{MemoryBoundKind::kNorm, false, 2e12},
        Law{MemoryBoundKind::kNorm, true, 0.8e12},
        Law{MemoryBoundKind::kReduction, true, 1.2e12}}) {
    for (const double bytes : {1e7, 1e8, 1e9}) {
      out.push_back({kernel(law.kind, law.backward, bytes), kOverhead_s + bytes / law.bytes_per_s});
    }
  }
  return out;
}

TEST(FitMemoryBound, TellsForwardFromBackward) {
  const std::vector<TimedKernel> kernels = kernels_of_a_law();
  const MemoryCurve curve = fit_memory_bound(device(), kernels, {});
  for (const TimedKernel& timed : kernels) {
    const double time = memory_bound_time(curve.fit, device(), timed.kernel, false).value();
    EXPECT_NEAR(time / timed.seconds, 1, 0.01);
  }
  const auto norm = static_cast<std::size_t>(MemoryBoundKind::kNorm);
  EXPECT_NEAR(curve.fit.kind_factor[norm], 2.4 / 2, 0.01);
  EXPECT_NEAR(curve.fit.backward_factor[norm], 2 / 0.8, 0.01);
  EXPECT_NEAR(curve.fit.fraction, 2.4 / 3, 0.01);  // of what streams
  EXPECT_NEAR(curve.fit.overhead_s, kOverhead_s, 0.05e-6);
  EXPECT_LT(curve.held_out.p90, 0.02);
}

TEST(FitMemoryBound, APassThatNobodyMeasuredHasTheOthersRate) {
  const MemoryCurve curve = fit_memory_bound(device(), kernels_of_a_law(), {});
  const auto seconds = [&](bool backward) {
    return memory_bound_time(curve.fit, device(),
                             kernel(MemoryBoundKind::kReduction, backward, 1e8), false)
        .value();
  };
  EXPECT_DOUBLE_EQ(seconds(false), seconds(true));
}

}  // namespace
}  // namespace stepcast
