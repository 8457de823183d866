// SPDX-License-Identifier: Apache-2.0
#include "sim/time.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "sim/clock_end.h"

namespace stepcast::sim {
namespace {

TEST(SimTime, SecondsAreRoundedToTheNearestPicosecond) {
  EXPECT_EQ(duration(Seconds(1.4e-12)).ps, 1);
  EXPECT_EQ(duration(Seconds(1.6e-12)).ps, 2);
  EXPECT_EQ(duration(Seconds(1e-6)).ps, 1'000'000);
  EXPECT_EQ(duration(Seconds(0)).ps, 0);
}

TEST(SimTime, RoundingDoesNotDriftOverManySteps) {
  // 0.1 us + 1/3 ps, a million times: each step loses 1/3 ps, never more than half of one.
  Time now;
  for (int i = 0; i < 1'000'000; ++i) now = now + duration(Seconds(1e-7 + 1e-12 / 3));
  EXPECT_EQ(now.ps, 100'000'000'000);
}

TEST(SimTime, DifferencesOfTimesAreDurations) {
  const Time later = Time{40} + Duration{2};
  EXPECT_EQ(later - Time{40}, Duration{2});
  EXPECT_DOUBLE_EQ(seconds(later).value(), 42e-12);
}

TEST(SimTime, ADurationIsNeverNegative) {
  EXPECT_THROW(duration(Seconds(-1e-12)), std::logic_error);
}

// A million seconds, what is longer, and what is no number of seconds at all.
TEST(SimTime, WhatIsTooLongForTheClockIsTheLongestDuration) {
  EXPECT_LT(duration(Seconds(999'999)), kLongestDuration);
  EXPECT_EQ(duration(Seconds(1e6)), kLongestDuration);
  EXPECT_EQ(duration(Seconds(1e300)), kLongestDuration);
  EXPECT_EQ(duration(Seconds(std::numeric_limits<double>::infinity())), kLongestDuration);
  EXPECT_EQ(duration(Seconds(std::nan(""))), kLongestDuration);
  EXPECT_EQ(bounded_sum(kLongestDuration, kLongestDuration), kLongestDuration);
  EXPECT_EQ(bounded_sum(Duration{1}, Duration{2}), Duration{3});
}

}  // namespace
}  // namespace stepcast::sim
