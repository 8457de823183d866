// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/median_interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace stepcast {
namespace {

TEST(MedianInterval, ExtremesOfFiveSamplesCoverTooLittle) {
  // Smallest to largest of n: 1 - 2/2^n = 0.9375 for 5 and 0.96875 for 6.
  EXPECT_FALSE(median_interval_rank(0));
  EXPECT_FALSE(median_interval_rank(5));
  EXPECT_EQ(median_interval_rank(6), 1);
  EXPECT_FALSE(median_interval({1, 2, 3, 4, 5}));
}

TEST(MedianInterval, RanksAreThoseOfTheBinomialTail) {
  // P(B < l) for 1/2: n = 10: l = 2: 11/1024 = 0.011, l = 3: 56/1024 = 0.055. n = 8: l = 1: 1/256,
  // l = 2: 9/256 = 0.035.
  EXPECT_EQ(median_interval_rank(10), 2);
  EXPECT_EQ(median_interval_rank(8), 1);
  // Adding the terms of Pascal's triangle gives the rank for every n up to 60.
  for (std::int64_t n = 6; n <= 60; ++n) {
    double term = std::exp2(-static_cast<double>(n)), tail = 0;
    std::int64_t rank = 0;
    while (tail + term <= 0.025) {
      tail += term;
      term *= static_cast<double>(n - rank) / static_cast<double>(rank + 1);
      ++rank;
    }
    EXPECT_EQ(median_interval_rank(n), rank) << n;
  }
}

TEST(MedianInterval, RanksOfManySamplesFollowTheNormalApproximation) {
  // l = n/2 - 1.96 sqrt(n)/2, to within one.
  for (const std::int64_t n : {1000, 10000, 1000000}) {
    const auto size = static_cast<double>(n);
    const auto rank = median_interval_rank(n);
    ASSERT_TRUE(rank);
    EXPECT_NEAR(static_cast<double>(*rank), size / 2 - 0.979982 * std::sqrt(size), 1.0) << n;
  }
}

TEST(MedianInterval, IsSymmetricInTheOrder) {
  // n = 10: second smallest to second largest.
  const auto interval = median_interval({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->low, 2);
  EXPECT_EQ(interval->high, 9);
}

TEST(MedianInterval, CoversTheMedianOfASkewedDistributionAsOftenAsItSays) {
  // n = 25: l = 8, coverage 1 - 2 P(B <= 7) = 1 - 2 * 0.02164 = 0.9567 whatever the distribution.
  // 4000 trials: standard deviation sqrt(0.9567 * 0.0433 / 4000) = 0.0032.
  std::mt19937_64 random(5);
  std::lognormal_distribution<double> skewed(0, 1);  // median 1
  int covered = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    std::vector<double> samples(25);
    for (double& sample : samples) sample = skewed(random);
    std::sort(samples.begin(), samples.end());
    const auto interval = median_interval(samples);
    covered += interval->low <= 1 && 1 <= interval->high ? 1 : 0;
  }
  EXPECT_NEAR(covered / 4000.0, 0.9567, 4 * 0.0032);
}

}  // namespace
}  // namespace stepcast
