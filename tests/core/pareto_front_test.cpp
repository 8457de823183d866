// SPDX-License-Identifier: Apache-2.0
#include "core/pareto_front.h"

#include <gtest/gtest.h>

#include <random>

namespace stepcast {
namespace {

TEST(ParetoFront, IsWhatNothingElseBeats) {
  const std::vector<std::size_t> front = pareto_front({{4, 1}, {2, 2}, {3, 2}, {1, 4}, {4, 4}});
  EXPECT_EQ(front, (std::vector<std::size_t>{0, 1, 3}));
}

TEST(ParetoFront, KeepsTheFirstOfEqualPoints) {
  EXPECT_EQ(pareto_front({{2, 2}, {1, 1}, {1, 1}}), (std::vector<std::size_t>{1}));
  EXPECT_TRUE(pareto_front({}).empty());
}

TEST(ParetoFront, LeavesOutExactlyWhatAPointOfItMatches) {
  std::mt19937 random(7);
  std::vector<std::vector<double>> points;
  for (int i = 0; i < 300; ++i) {
    points.push_back({double(random() % 20), double(random() % 20), double(random() % 20)});
  }
  const auto matches = [&](std::size_t a, std::size_t b) {  // a is as good as b in all
    return points[a][0] <= points[b][0] && points[a][1] <= points[b][1] &&
           points[a][2] <= points[b][2];
  };
  const std::vector<std::size_t> front = pareto_front(points);
  std::vector<bool> on_front(points.size(), false);
  for (const std::size_t index : front) on_front[index] = true;
  for (std::size_t i = 0; i < points.size(); ++i) {
    bool matched = false;
    for (const std::size_t other : front) matched = matched || (other != i && matches(other, i));
    EXPECT_NE(matched, on_front[i]) << i;
  }
}

}  // namespace
}  // namespace stepcast
