// SPDX-License-Identifier: Apache-2.0
#include "program/waits.h"

#include <gtest/gtest.h>

#include <vector>

namespace stepcast {
namespace {

std::vector<InstructionIndex> listed(const Waits& waits) { return {waits.begin(), waits.end()}; }

TEST(Waits, GrowAsNeededInTheOrderInWhichTheyWereNamed) {
  Waits waits;
  std::vector<InstructionIndex> expected;
  for (InstructionIndex i = 20; i > 0; --i) {
    waits.add(i);
    waits.add(i);  // named twice, awaited once
    expected.push_back(i);
    EXPECT_EQ(listed(waits), expected);
    EXPECT_TRUE(waits.contains(i));
    EXPECT_FALSE(waits.contains(i - 1));
  }
  const Waits copy = waits;
  waits = {};
  EXPECT_TRUE(waits.empty());
  EXPECT_EQ(listed(copy), expected);
  EXPECT_FALSE(copy == waits);
}

TEST(Waits, AreEqualWhetherTheyFitOrNot) {
  for (const int count : {0, 3, 4, 5, 9}) {
    Waits a, b;
    for (int i = 0; i < count; ++i) {
      a.add(i);
      b.add(i);
    }
    EXPECT_TRUE(a == b);
    b.add(count);
    EXPECT_FALSE(a == b);
  }
}

}  // namespace
}  // namespace stepcast
