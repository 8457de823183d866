// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_watch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launch/rank_output.h"

namespace stepcast {
namespace {

using std::chrono::milliseconds;

const RankWatch::Time kBegin{std::chrono::hours(1)};

RankWatch::Time at(int time_ms) { return kBegin + milliseconds(time_ms); }

LaunchLimits limits() {
  LaunchLimits out;
  out.start = milliseconds(100);
  out.silence = milliseconds(50);
  out.settle = milliseconds(10);
  return out;
}

void hear(RankWatch& watch, int rank, const std::string& event, int time_ms) {
  watch.hear(rank, fmt::format(R"(@stepcast {{"rank":{},"event":"{}"}})", rank, event),
             at(time_ms));
}

RankWatch started_at(int time_ms, const LaunchLimits& with = limits()) {
  RankWatch watch(2, with, kBegin, {});
  hear(watch, 0, "started", time_ms);
  hear(watch, 1, "started", time_ms);
  return watch;
}

TEST(RankWatch, WaitsForAllRanksToStart) {
  RankWatch watch(2, limits(), kBegin, {});
  hear(watch, 0, "started", 1);
  EXPECT_EQ(watch.reached(at(99)), std::nullopt);  // also longer than the silence
  EXPECT_EQ(watch.reached(at(100)), StopReason::kLateStart);
}

TEST(RankWatch, MeasuresSilenceFromTheLastReportOfAnyRank) {
  RankWatch watch = started_at(20);
  EXPECT_EQ(watch.reached(at(69)), std::nullopt);
  EXPECT_EQ(watch.reached(at(70)), StopReason::kSilence);
  hear(watch, 1, "heartbeat", 60);
  EXPECT_EQ(watch.reached(at(109)), std::nullopt);
  EXPECT_EQ(watch.reached(at(110)), StopReason::kSilence);
}

TEST(RankWatch, OtherOutputIsNoSignOfLife) {
  RankWatch watch = started_at(20);
  watch.hear(0, "still here", at(60));
  EXPECT_EQ(watch.reached(at(70)), StopReason::kSilence);
}

TEST(RankWatch, HasNoTotalLimitUnlessToldOne) {
  RankWatch watch = started_at(0);
  for (int time = 0; time <= 1'000'000; time += 40) hear(watch, 0, "heartbeat", time);
  EXPECT_EQ(watch.reached(at(1'000'000)), std::nullopt);

  LaunchLimits with = limits();
  with.total = milliseconds(60);
  RankWatch limited = started_at(0, with);
  hear(limited, 0, "heartbeat", 40);
  EXPECT_EQ(limited.reached(at(59)), std::nullopt);
  EXPECT_EQ(limited.reached(at(60)), StopReason::kTimeLimit);
}

TEST(RankWatch, LetsTheOthersSpeakAfterAFailure) {
  RankWatch watch = started_at(0);
  hear(watch, 1, "failed", 5);
  hear(watch, 0, "failed", 12);  // does not begin the time anew
  EXPECT_EQ(watch.reached(at(14)), std::nullopt);
  EXPECT_EQ(watch.reached(at(15)), StopReason::kFailure);
  ASSERT_EQ(watch.failures().size(), 2u);
  EXPECT_EQ(watch.failures()[0].rank, 1);
}

TEST(RankWatch, KeepsTheLastLinesOfEachRank) {
  RankWatch watch = started_at(0);
  for (int i = 0; i < 100; ++i) watch.hear(1, fmt::format("line {}", i), at(1));
  EXPECT_TRUE(watch.ranks()[0].last_lines.empty());
  ASSERT_EQ(watch.ranks()[1].last_lines.size(), RankWatch::kLines);
  EXPECT_EQ(watch.ranks()[1].last_lines.front(), "line 60");
  EXPECT_EQ(watch.ranks()[1].last_lines.back(), "line 99");
}

TEST(RankWatch, KeepsMpirunsWordsApart) {
  RankWatch watch = started_at(0);
  watch.hear(RankOutput::kLauncher, "mpirun noticed", at(1));
  EXPECT_EQ(watch.launcher_words(), "mpirun noticed\n");
}

TEST(RankWatch, AReportOfARankThatIsNotThereIsOutput) {
  std::vector<RankReport> heard;
  RankWatch watch(1, limits(), kBegin, [&](const RankReport& report) { heard.push_back(report); });
  const std::string line = R"(@stepcast {"rank":7,"event":"started"})";
  watch.hear(0, line, at(1));
  EXPECT_TRUE(heard.empty());
  EXPECT_EQ(watch.ranks()[0].last_lines.front(), line);
}

}  // namespace
}  // namespace stepcast
