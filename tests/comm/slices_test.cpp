// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "comm/segments.h"

namespace stepcast {
namespace {

TEST(Slices, OfTenElementsOverFourRanksBeginAtZeroTwoFiveSeven) {
  // r*10/4 = 0, 2.5, 5, 7.5, rounded down.
  const std::vector<std::int64_t> begins = {0, 2, 5, 7, 10};
  for (int rank = 0; rank < 4; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    EXPECT_EQ(slice_of(10, 4, rank).begin, begins[index]);
    EXPECT_EQ(slice_of(10, 4, rank).end, begins[index + 1]);
  }
}

TEST(Slices, OfHugeCountsDoNotOverflow) {
  // 7 * 2^62/8 would be 2^64.8 before the division.
  const std::int64_t count = std::int64_t{1} << 62;
  EXPECT_EQ(slice_of(count, 8, 7).begin, 7 * (count / 8));
  EXPECT_EQ(slice_of(count, 8, 7).end, count);
}

TEST(Slices, CoverEverythingAndDifferByOneAtMost) {
  for (int ranks = 1; ranks < 9; ++ranks) {
    for (std::int64_t count = 0; count < 40; ++count) {
      std::int64_t end = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Slice slice = slice_of(count, ranks, rank);
        EXPECT_EQ(slice.begin, end);
        EXPECT_EQ(slice.begin, rank * count / ranks);
        EXPECT_GE(slice.size(), count / ranks);
        EXPECT_LE(slice.size(), count / ranks + 1);
        end = slice.end;
      }
      EXPECT_EQ(end, count);
    }
  }
}

TEST(Segments, CoverASliceInOrder) {
  for (const std::int64_t size : {0, 1, 65536, 65537, 1000000}) {
    std::int64_t end = 11;
    for (const Slice& segment : segments_of({11, 11 + size})) {
      EXPECT_EQ(segment.begin, end);
      EXPECT_GT(segment.size(), 0);
      end = segment.end;
    }
    EXPECT_EQ(end, 11 + size);
  }
}

TEST(Segments, OfAnEmptyMessageAreOneEmptyPiece) {
  ASSERT_EQ(pieces_of(0).size(), 1U);
  EXPECT_EQ(pieces_of(0).front().size(), 0);
  EXPECT_TRUE(segments_of({5, 5}).empty());
}

}  // namespace
}  // namespace stepcast
