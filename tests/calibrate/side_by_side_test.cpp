// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/side_by_side.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stepcast {
namespace {

// Work that goes at a rate alone, and at a part of it while the other kind is there.
struct FakeDevice {
  double first_s, second_s;            // a call, alone
  double first_slowed, second_slowed;  // factors of time while both are there
  double drift = 1;                    // of clocks, from run to run
  double speed = 1;
  int runs = 0;
  std::int64_t most_first = 0;
  std::int64_t most_second = 0;

  BothTimes run(std::int64_t first, std::int64_t second) {
    ++runs;
    most_first = std::max(most_first, first);
    most_second = std::max(most_second, second);
    speed *= drift;
    const double a = static_cast<double>(first) * first_s * speed;
    const double b = static_cast<double>(second) * second_s * speed;
    if (first == 0 || second == 0) return {a, b};
    // Until the earlier end both are slow; what is left of the other goes at full speed.
    const double together = std::min(a * first_slowed, b * second_slowed);
    return {together + (a - together / first_slowed), together + (b - together / second_slowed)};
  }
  RunBoth both() {
    return [this](std::int64_t first, std::int64_t second) { return run(first, second); };
  }
};

TEST(SideBySide, TellsHowEachSlowsTheOther) {
  FakeDevice device{.first_s = 2e-4, .second_s = 3e-3, .first_slowed = 1.25, .second_slowed = 1.1};
  const SideBySide measured = measure_side_by_side(device.both());
  EXPECT_NEAR(measured.second_alone_s, 3e-3, 1e-12);
  EXPECT_NEAR(measured.first_slowdown, 1.25, 1e-9);
  EXPECT_NEAR(measured.second_slowdown, 1.1, 1e-9);
}

TEST(SideBySide, CoversWorkThatBecomesManyTimesSlower) {
  FakeDevice device{.first_s = 1e-3, .second_s = 1e-4, .first_slowed = 6, .second_slowed = 1};
  EXPECT_NEAR(measure_side_by_side(device.both()).first_slowdown, 6, 1e-9);
}

TEST(SideBySide, WorkThatDoesNotMeetIsNotSlowed) {
  FakeDevice device{.first_s = 1e-3, .second_s = 2e-3, .first_slowed = 1, .second_slowed = 1};
  const SideBySide measured = measure_side_by_side(device.both());
  EXPECT_EQ(measured.first_slowdown, 1);
  EXPECT_EQ(measured.second_slowdown, 1);
}

TEST(SideBySide, PairsOfSamplesTakeDriftOut) {
  // 0.1 % slower from run to run: a device that grows warm.
  FakeDevice device{
      .first_s = 1e-3, .second_s = 1e-3, .first_slowed = 1.2, .second_slowed = 1.2, .drift = 1.001};
  const SideBySide measured = measure_side_by_side(device.both());
  EXPECT_NEAR(measured.first_slowdown, 1.2 * 1.001, 1e-3);
  EXPECT_GT(device.runs, 36);
}

TEST(SideBySide, ShortWorkIsRepeatedAndLongWorkIsNot) {
  FakeDevice device{.first_s = 1e-5, .second_s = 1, .first_slowed = 1, .second_slowed = 1};
  measure_side_by_side(device.both(), 5e-3);
  // 500 calls make a sample; second is covered by what lasts longer than it, up to a bound.
  EXPECT_GE(device.most_first, 500);
  EXPECT_EQ(device.most_second, 1);
}

}  // namespace
}  // namespace stepcast
