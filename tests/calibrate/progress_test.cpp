// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/progress.h"

#include <gtest/gtest.h>

namespace stepcast {
namespace {

TEST(Progress, TheLineSaysHowFarAndHowLong) {
  Progress progress("calibrate", 120);
  for (int i = 0; i < 37; ++i) progress.finish(0.5);
  // 37/120 of 20 columns = 6; 83 points of 0.5 s = 41.5 s, to 5 s.
  EXPECT_EQ(
      progress.line("gemm forward 512 x 768 x 768"),
      "calibrate   37 of 120  [======>             ]  about 40 s left  gemm forward 512 x 768 "
      "x 768");
}

TEST(Progress, SaysNothingOfTheTimeBeforeItKnowsAny) {
  Progress progress("calibrate", 8);
  progress.skip();
  progress.skip();
  EXPECT_FALSE(progress.seconds_left());
  EXPECT_EQ(progress.line("norm"), "calibrate  2 of 8  [=====>              ]  norm");
}

TEST(Progress, TheEndHasAFullBarAndNothingLeft) {
  Progress progress("calibrate", 2);
  progress.finish(1);
  progress.finish(1);
  EXPECT_EQ(progress.line(""), "calibrate  2 of 2  [====================]");
  EXPECT_EQ(Progress("calibrate", 0).line(""), "calibrate  0 of 0  [====================]");
}

TEST(Progress, PointsOfAnEarlierRunDoNotMakeItFaster) {
  Progress progress("calibrate", 100);
  for (int i = 0; i < 50; ++i) progress.skip();
  progress.finish(2);
  EXPECT_NEAR(*progress.seconds_left(), 49 * 2, 1e-9);
}

TEST(Progress, OneInterruptionDoesNotCount) {
  // 1, 1, 1, 600: without the fastest and the slowest tenth (one of each) 1 s a point.
  Progress progress("calibrate", 14);
  for (const double seconds : {1.0, 600.0, 1.0, 1.0}) progress.finish(seconds);
  EXPECT_NEAR(*progress.seconds_left(), 10, 1e-9);
}

TEST(Progress, ANarrowTerminalCutsThePointFirst) {
  Progress progress("calibrate", 9);
  const std::string line = progress.line("attention forward 1 x 12 x 1024 x 64", 52);
  EXPECT_EQ(line, "calibrate  0 of 9  [>                   ]  attent...");
  EXPECT_EQ(line.size(), 52u);
  EXPECT_EQ(progress.line("norm", 2), "ca");
}

TEST(Progress, DurationsAreAsRoughAsTheyAreKnown) {
  EXPECT_EQ(rough_duration(0.2), "about 1 s");
  EXPECT_EQ(rough_duration(7.4), "about 7 s");
  EXPECT_EQ(rough_duration(43), "about 45 s");
  EXPECT_EQ(rough_duration(94), "about 95 s");
  EXPECT_EQ(rough_duration(96), "about 2 min");
  EXPECT_EQ(rough_duration(3560), "about 59 min");
  EXPECT_EQ(rough_duration(3590), "about 1 h");
  EXPECT_EQ(rough_duration(4900), "about 1 h 20 min");  // 82 min
}

}  // namespace
}  // namespace stepcast
