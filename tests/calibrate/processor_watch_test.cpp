// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/processor_watch.h"

#include <gtest/gtest.h>

#include "core/temporary_folder.h"

namespace stepcast {
namespace {

using testing::TemporaryFolder;

// 100 ticks a second: user 200, nice 100, system 300, idle 1000, waiting 500, interrupts 40 and 60,
// stolen 400. Busy are 200 + 100 + 300 + 40 + 60 = 700; guests (70, 7) are part of user and nice.
constexpr const char* kLine = "cpu  200 100 300 1000 500 40 60 400 70 7";

TEST(ProcessorUse, ReadsSecondsFromTheKernelsLine) {
  const auto use = parse_processor_use(kLine, 100);
  ASSERT_TRUE(use);
  EXPECT_DOUBLE_EQ(use->busy_s, 7);
  EXPECT_DOUBLE_EQ(use->stolen_s, 4);
  EXPECT_DOUBLE_EQ(use->span_s, 7 + 4 + 15);
  EXPECT_DOUBLE_EQ(use->own_s, 0);
}

TEST(ProcessorUse, ReadsNothingFromOtherLines) {
  EXPECT_FALSE(parse_processor_use("", 100));
  EXPECT_FALSE(parse_processor_use("cpu0 200 100 300 1000 500 40 60 400", 100));
  EXPECT_FALSE(parse_processor_use("cpu 200 100 300", 100));
  EXPECT_FALSE(parse_processor_use("cpu 200 100 300 -1000 500 40 60 400", 100));
}

TEST(ProcessorUse, OthersAreWhatIsBusyForNobodyWhoMeasures) {
  const ProcessorUse use{20, 15, 1, 9};
  EXPECT_DOUBLE_EQ(use.others_fraction(), 6.0 / 20);
  EXPECT_DOUBLE_EQ(use.stolen_fraction(), 1.0 / 20);
  EXPECT_TRUE(use.is_too_busy());
}

TEST(ProcessorUse, AQuietMachineIsNotTooBusy) {
  // 3.5 % of others and 1 % stolen are below the limit of 5 %, 4.5 % and 1 % are above it.
  EXPECT_FALSE((ProcessorUse{20, 10.7, 0.2, 10}).is_too_busy());
  EXPECT_TRUE((ProcessorUse{20, 10.9, 0.2, 10}).is_too_busy());
  // Ticks of 10 ms are too coarse for less than a second.
  EXPECT_FALSE((ProcessorUse{0.9, 0.9, 0, 0}).is_too_busy());
  // Ticks are rounded: a process may seem to have had more than all processors.
  EXPECT_DOUBLE_EQ((ProcessorUse{20, 10, 0, 10.1}).others_fraction(), 0);
}

TEST(ProcessorWatch, CountsFromItsConstructionOn) {
  TemporaryFolder folder;
  folder.write("stat", "cpu  200 100 300 1000 500 40 60 400 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n");
  const ProcessorWatch watch(folder / "stat");
  folder.write("stat", "cpu  300 100 300 1200 500 40 60 450 0 0\n");
  const auto use = watch.so_far();
  ASSERT_TRUE(use);
  const double ticks = 100;  // USER_HZ, on every Linux that Debian supports
  EXPECT_DOUBLE_EQ(use->busy_s, 100 / ticks);
  EXPECT_DOUBLE_EQ(use->stolen_s, 50 / ticks);
  EXPECT_DOUBLE_EQ(use->span_s, 350 / ticks);
  EXPECT_GE(use->own_s, 0);
}

TEST(ProcessorWatch, SaysNothingWhereTheKernelDoesNot) {
  TemporaryFolder folder;
  EXPECT_FALSE(ProcessorWatch(folder / "none").so_far());
}

}  // namespace
}  // namespace stepcast
