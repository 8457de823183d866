// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_output.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace stepcast {
namespace {

using Lines = std::vector<std::pair<int, std::string>>;

// Reads pieces of `piece` bytes, as pipes deliver them.
Lines taken_apart(const std::string& merged, std::size_t piece = std::string::npos) {
  Lines out;
  RankOutput output(
      [&](int rank, std::string_view line) { out.emplace_back(rank, std::string(line)); });
  for (std::size_t at = 0; at < merged.size(); at += std::min(piece, merged.size() - at)) {
    output.add(std::string_view(merged).substr(at, piece));
  }
  output.end();
  return out;
}

TEST(RankOutput, BelongsToTheRankOfItsTag) {
  EXPECT_EQ(taken_apart("[1,0]<stdout>:a\n[1,12]<stderr>:b\n"), (Lines{{0, "a"}, {12, "b"}}));
}

TEST(RankOutput, JoinsALineThatTwoChunksShare) {
  EXPECT_EQ(taken_apart("[1,0]<stderr>:one [1,0]<stderr>:line\n"), (Lines{{0, "one line"}}));
}

TEST(RankOutput, JoinsALineThatAnotherRankInterrupts) {
  const std::string merged =
      "[1,0]<stderr>:one [1,1]<stderr>:other\n[1,1]<stderr>:half[1,0]<stderr>:line\n";
  EXPECT_EQ(taken_apart(merged), (Lines{{1, "other"}, {0, "one line"}, {1, "half"}}));
}

TEST(RankOutput, IsTheSameHoweverThePipeDeliversIt) {
  const std::string merged =
      "[1,0]<stderr>:one [1,1]<stderr>:other\n[1,1]<stderr>:half[1,0]<stderr>:line\nmpirun\n";
  for (std::size_t piece = 1; piece < merged.size(); ++piece) {
    EXPECT_EQ(taken_apart(merged, piece), taken_apart(merged)) << piece;
  }
}

TEST(RankOutput, WithoutATagIsMpiruns) {
  const int launcher = RankOutput::kLauncher;
  EXPECT_EQ(taken_apart("-----\nmpirun noticed\n\n"),
            (Lines{{launcher, "-----"}, {launcher, "mpirun noticed"}, {launcher, ""}}));
}

TEST(RankOutput, KeepsWhatOnlyLooksLikeATag) {
  for (const std::string text : {"[1,0] x", "[1,0]<stdin>:", "[vm:14] *", "[1,-2]<stderr>:", "[",
                                 "[1", "[1,", "[1,0", "[,]<stderr>:", "[1,99999999999]<stderr>:"}) {
    EXPECT_EQ(taken_apart("[1,0]<stderr>:" + text + "\n"), (Lines{{0, text}}));
  }
}

TEST(RankOutput, EndsWithUnfinishedLines) {
  EXPECT_EQ(taken_apart("[1,1]<stdout>:b[1,0]<stdout>:a"), (Lines{{0, "a"}, {1, "b"}}));
}

TEST(RankOutput, OfARankThatNeverEndsItsLineIsCut) {
  // 2^20 letters without a newline are held as lines of at most 2^16.
  const Lines lines = taken_apart("[1,0]<stdout>:" + std::string(1 << 20, 'x'), 4096);
  ASSERT_FALSE(lines.empty());
  for (const auto& [rank, line] : lines) EXPECT_LE(line.size(), std::size_t{1} << 16);
}

}  // namespace
}  // namespace stepcast
