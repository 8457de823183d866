// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_kinds.h"

#include <gtest/gtest.h>

namespace stepcast {
namespace {

constexpr auto kNorm = static_cast<std::size_t>(MemoryBoundKind::kNorm);
constexpr auto kRotary = static_cast<std::size_t>(MemoryBoundKind::kRotary);
constexpr auto kLoss = static_cast<std::size_t>(MemoryBoundKind::kCrossEntropy);

KindPoint shows(std::size_t kind, bool backward, bool in_steps, double factor) {
  return {{kind, backward, in_steps, 1, 1, 1, 1, 1}, factor};
}

TEST(FitKinds, AKernelTakesItsTimeWithoutItsLaunches) {
  // 1000 rows of 1000 elements, 4 bytes each, at 1e12 bytes/s: 4 us of a copy.
  const MemoryPoint point{kNorm, false, true, 3, 1000, 1000, 4, 9e-6};
  EXPECT_NEAR(kind_point(point, 1e12, 1e-6).factor, 1.5, 1e-9);
}

TEST(FitKinds, FactorsAreMediansByKindPassAndWay) {
  MemoryFit fit;
  fit.kind_factor[kLoss] = 1.2;
  const FitError error =
      fit_kinds({shows(kNorm, false, false, 1.0), shows(kNorm, false, false, 1.2),
                 shows(kNorm, false, false, 1.1), shows(kNorm, true, false, 2.2),
                 shows(kNorm, true, true, 1.6), shows(kLoss, true, true, 1.3)},
                fit);
  EXPECT_DOUBLE_EQ(fit.kind_factor[kNorm], 1.1);
  EXPECT_DOUBLE_EQ(fit.kind_factor[kNorm] * fit.backward_factor[kNorm], 2.2);
  EXPECT_DOUBLE_EQ(fit.step_factor[kNorm], 1.6);
  EXPECT_DOUBLE_EQ(fit.step_factor[kRotary], 1.6);  // a chain without points of its own
  EXPECT_DOUBLE_EQ(fit.step_factor[kLoss], 1.3);
  EXPECT_DOUBLE_EQ(fit.kind_factor[kLoss], 1.2);
  EXPECT_NEAR(error.median, 0, 1e-9);  // of six points two are off
  EXPECT_GT(error.p90, 0.05);
}

TEST(FitKinds, WithoutPointsStepsCostWhatKernelsDo) {
  MemoryFit fit;
  fit.kind_factor[kLoss] = 2;
  fit_kinds({}, fit);
  EXPECT_EQ(fit.step_factor, fit.kind_factor);
  EXPECT_EQ(fit.backward_factor, kEqualKinds);
}

}  // namespace
}  // namespace stepcast
