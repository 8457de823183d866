// SPDX-License-Identifier: Apache-2.0
#include "cost/gemm_pace.h"

#include <gtest/gtest.h>

#include "cost/profile.h"

namespace stepcast {
namespace {

GemmFit with(double alone, double many) {
  GemmFit fit;
  fit.back_to_back_alone = alone;
  fit.back_to_back = many;
  return fit;
}

TEST(GemmPace, GrowsWithTheLogarithmFromOneGpuToANodesEight) {
  const GemmFit fit = with(1.2, 1.5);
  EXPECT_DOUBLE_EQ(among(fit, 1).back_to_back, 1.2);
  EXPECT_DOUBLE_EQ(among(fit, 2).back_to_back, 1.3);
  EXPECT_DOUBLE_EQ(among(fit, 4).back_to_back, 1.4);
  for (const std::int64_t gpus : {8, 9, 64, 131072}) {
    EXPECT_DOUBLE_EQ(among(fit, gpus).back_to_back, 1.5) << gpus;
  }
}

TEST(GemmPace, StaysAsItIsWhereAProfileSaysOneOfTheTwoAlone) {
  EXPECT_DOUBLE_EQ(among(with(0, 1.45), 1).back_to_back, 1.45);
  EXPECT_DOUBLE_EQ(among(with(1.2, 0), 1).back_to_back, 0);  // priced as in a short run
}

// The slider moves the limit, and no product runs faster than in a short run.
TEST(GemmPace, PowerOfTheMemoryLiftsTheLimit) {
  const double limited = among(with(1.2, 1.5), 8).back_to_back;
  EXPECT_LT(among(with(1.2, 1.5), 8, true).back_to_back, limited);
  EXPECT_DOUBLE_EQ(among(with(1.02, 1.05), 8, true).back_to_back, 1);
  EXPECT_DOUBLE_EQ(among(with(1.2, 0), 8, true).back_to_back, 0);
}

}  // namespace
}  // namespace stepcast
