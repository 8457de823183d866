// SPDX-License-Identifier: Apache-2.0
#include "plan/offers/gpu_counts.h"

#include <gtest/gtest.h>

namespace stepcast {
namespace {

using Counts = std::vector<std::int64_t>;

TEST(GpuCounts, RangesDoubleFromTheirLowEnd) {
  EXPECT_EQ(*parse_gpu_counts("64..512"), (Counts{64, 128, 256, 512}));
  EXPECT_EQ(*parse_gpu_counts("48..200"), (Counts{48, 96, 192}));
  EXPECT_EQ(*parse_gpu_counts("8..8"), (Counts{8}));
  EXPECT_EQ(*parse_gpu_counts("8-64"), (Counts{8, 16, 32, 64}));
}

TEST(GpuCounts, ListsAreSortedAndHoldEachCountOnce) {
  EXPECT_EQ(*parse_gpu_counts("512,64,128"), (Counts{64, 128, 512}));
  EXPECT_EQ(*parse_gpu_counts("16,8..32,24"), (Counts{8, 16, 24, 32}));
}

TEST(GpuCounts, RefusesWhatIsNoCountNamingIt) {
  for (const char* text : {"", "64,", "many", "64..", "..64", "6 4", "64..128..256", "1.5"}) {
    const auto counts = parse_gpu_counts(text);
    ASSERT_FALSE(counts) << text;
    EXPECT_EQ(counts.error().front().path, "--gpus") << text;
  }
  EXPECT_FALSE(parse_gpu_counts("0"));
  EXPECT_FALSE(parse_gpu_counts("-8"));
  EXPECT_FALSE(parse_gpu_counts("64..99999999999999999999"));
  EXPECT_FALSE(parse_gpu_counts("128..64"));
}

}  // namespace
}  // namespace stepcast
