// SPDX-License-Identifier: Apache-2.0
// docs/worked-examples.md, "Sharding": P parameters over N ranks (Rajbhandari et al. 2020,
// section 5). ZeRO 1, 2, 3: (4 + 12/N) P, (2 + 14/N) P, 16 P / N.
#include <gtest/gtest.h>

#include "worked_figures/worked_scenarios.h"

namespace stepcast {
namespace {

using testing::gigabytes;
using testing::states;

double saving(int zero, std::int64_t ranks) {
  const double parameters = 6.4e9;
  return gigabytes(states(parameters).total()) / gigabytes(states(parameters, zero, ranks).total());
}

// 16/(4 + 12/64) = 3.82, 16/(2 + 14/64) = 7.21; 4 and 8 for N without end.
TEST(WorkedSharding, FourAndEightTimesAreLimits) {
  EXPECT_NEAR(saving(1, 64), 3.82, 0.005);
  EXPECT_NEAR(saving(2, 64), 7.21, 0.005);
  for (const std::int64_t ranks : {2, 64, 1024, 100'000}) {
    EXPECT_LT(saving(1, ranks), 4);
    EXPECT_LT(saving(2, ranks), 8);
  }
  EXPECT_NEAR(saving(1, 100'000), 4, 1e-3);
  EXPECT_NEAR(saving(2, 100'000), 8, 1e-3);
}

// Rajbhandari et al. 2020, figure 1.
TEST(WorkedSharding, Of7500MillionOver64RanksIsThePapersFigure) {
  const double expected[] = {120, 31.4, 16.6, 1.9};
  for (int zero = 0; zero <= 3; ++zero) {
    EXPECT_NEAR(gigabytes(states(7.5e9, zero, 64).total()), expected[zero], 0.05) << zero;
  }
}

// 16 P / 16 = P bytes = 175 GB.
TEST(WorkedSharding, Of175BillionOn16RanksDoesNotFitEvenWithZero3) {
  EXPECT_NEAR(gigabytes(states(175e9, 1, 16).total()), 831, 0.5);
  EXPECT_NEAR(gigabytes(states(175e9, 2, 16).total()), 503, 0.5);
  EXPECT_DOUBLE_EQ(gigabytes(states(175e9, 3, 16).total()), 175);
  const double claimed = gigabytes(states(175e9, 3, 32).total());  // which takes 32 ranks
  EXPECT_DOUBLE_EQ(claimed, 87.5);
  EXPECT_GT(claimed, 80);
}

// 16 P/8 = 60, (4 + 12/4) P/8 = 26.25, 16 P/32 = 15.
TEST(WorkedSharding, Of30BillionOnTp8Dp4EachRankHolds60GB) {
  EXPECT_DOUBLE_EQ(gigabytes(states(30e9 / 8).total()), 60);
  EXPECT_DOUBLE_EQ(gigabytes(states(30e9 / 8, 1, 4).total()), 26.25);
  EXPECT_DOUBLE_EQ(gigabytes(states(30e9, 3, 32, "fsdp").total()), 15);
}

}  // namespace
}  // namespace stepcast
