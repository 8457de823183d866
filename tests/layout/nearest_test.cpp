// SPDX-License-Identifier: Apache-2.0
#include "layout/nearest.h"

#include <gtest/gtest.h>

namespace stepcast {
namespace {

using Values = std::vector<std::int64_t>;

TEST(NearestDivisors, StandOnBothSides) {
  EXPECT_EQ(nearest_divisors(64, 24), (Values{16, 32}));
  EXPECT_EQ(nearest_divisors(32, 64), (Values{32}));
  EXPECT_EQ(nearest_divisors(7, 3), (Values{1, 7}));
  EXPECT_EQ(nearest_divisors(0, 3), Values{});
}

TEST(NearestMultiples, LeaveOutZero) {
  EXPECT_EQ(nearest_multiples(32, 500), (Values{480, 512}));
  EXPECT_EQ(nearest_multiples(32, 3), (Values{32}));
  EXPECT_EQ(nearest_multiples(std::int64_t{1} << 62, 5), Values{});  // no number to type
}

TEST(CappedProduct, StopsAtTwoToTheSixtyTwo) {
  EXPECT_EQ(capped_product({2, 3, 7}), 42);
  EXPECT_EQ(capped_product({1 << 20, 1 << 20, 1 << 20, 1 << 20}), std::int64_t{1} << 62);
}

}  // namespace
}  // namespace stepcast
