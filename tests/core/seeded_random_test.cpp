// SPDX-License-Identifier: Apache-2.0
#include "core/seeded_random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace stepcast {
namespace {

TEST(SeededRandom, IsSplitMix64) {
  // The first values of seed 1234567 by the authors' reference program.
  SeededRandom random(1234567);
  EXPECT_EQ(random.bits(), 6457827717110365317u);
  EXPECT_EQ(random.bits(), 3203168211198807973u);
  EXPECT_EQ(random.bits(), 9817491932198370423u);
}

TEST(SeededRandom, StreamsOfOneSeedDiffer) {
  std::set<std::uint64_t> first;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    for (std::uint64_t stream = 0; stream < 30; ++stream) {
      first.insert(SeededRandom(seed, stream).bits());
    }
  }
  EXPECT_EQ(first.size(), 900u);
}

TEST(SeededRandom, EveryValueBelowABoundIsEquallyLikely) {
  // 60,000 draws among 6: each count has mean 10,000 and deviation sqrt(60000 * 5/36) = 91.
  SeededRandom random(7);
  int counts[6] = {};
  for (int i = 0; i < 60000; ++i) ++counts[random.below(6)];
  for (const int count : counts) EXPECT_NEAR(count, 10000, 5 * 91);
}

TEST(SeededRandom, UniformNumbersHaveTheirMeanAndStayBelowOne) {
  SeededRandom random(3);
  double sum = 0, largest = 0;
  for (int i = 0; i < 10000; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0);
    largest = std::max(largest, value);
    sum += value;
  }
  EXPECT_LT(largest, 1);
  EXPECT_NEAR(sum / 10000, 0.5, 5 * std::sqrt(1.0 / 12 / 10000));
}

}  // namespace
}  // namespace stepcast
