// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/sweep_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace stepcast {
namespace {

const std::vector<SweepShape> kNeeded = {{512, 768, 768}, {512, 3072, 768}, {512, 768, 3072}};

TEST(SweepGrid, StartsWithWhatIsNeeded) {
  auto repeated = kNeeded;
  repeated.push_back(kNeeded[1]);
  const auto grid = sweep_grid(repeated, {.extra = 10});
  ASSERT_EQ(grid.size(), 3u + 10u);
  EXPECT_TRUE(std::equal(kNeeded.begin(), kNeeded.end(), grid.begin()));
  EXPECT_EQ(std::set<SweepShape>(grid.begin(), grid.end()).size(), grid.size());
}

TEST(SweepGrid, IsTheSameForTheSameSeedAndAnotherForAnother) {
  EXPECT_EQ(sweep_grid(kNeeded, {.seed = 5}), sweep_grid(kNeeded, {.seed = 5}));
  EXPECT_NE(sweep_grid(kNeeded, {.seed = 5}), sweep_grid(kNeeded, {.seed = 6}));
  // Every machine and every compiler gives these: the first extra points of seed 1.
  const auto grid = sweep_grid({{1000, 1000}, {64000, 1000}}, {.extra = 2});
  EXPECT_EQ(grid[2], (SweepShape{769, 1252}));
  EXPECT_EQ(grid[3], (SweepShape{2236, 1000}));
}

TEST(SweepGrid, StaysWithinAnOctavesShareOfTheNeededRange) {
  const auto grid = sweep_grid(kNeeded, {.extra = 200, .around_octaves = 0.5});
  ASSERT_EQ(grid.size(), 203u);
  const double margin = std::exp2(0.5);
  for (const SweepShape& shape : grid) {
    EXPECT_GE(static_cast<double>(shape[0]), std::floor(512 / margin));
    EXPECT_LE(static_cast<double>(shape[0]), std::ceil(512 * margin));
    for (const std::size_t axis : {1u, 2u}) {
      EXPECT_GE(static_cast<double>(shape[axis]), std::floor(768 / margin));
      EXPECT_LE(static_cast<double>(shape[axis]), std::ceil(3072 * margin));
    }
  }
}

TEST(SweepGrid, FillsTheSpaceBetweenEvenlyInTheLogarithm) {
  // Six octaves, and half of 300 extra points between the ends: 25 for each octave. Random points
  // would have a deviation of 4.6.
  const std::int64_t low = 1 << 20, high = 1 << 26;
  const auto grid = sweep_grid({{low}, {high}}, {.extra = 300, .around_octaves = 0.01});
  std::vector<int> octaves(6);
  for (const SweepShape& shape : grid) {
    const double octave = std::log2(static_cast<double>(shape[0]) / static_cast<double>(low));
    if (octave > 0.02 && octave < 5.98) ++octaves[static_cast<std::size_t>(octave)];
  }
  for (const int count : octaves) EXPECT_NEAR(count, 25, 3);
}

TEST(SweepGrid, SurroundsEveryNeededShapeOnAllSides) {
  // 64 extra points around four shapes and between them: 8 around each, of which 4 are below and 4
  // above along the first axis, to within one.
  std::vector<SweepShape> needed;
  for (const std::int64_t m : {1 << 10, 1 << 20}) {
    for (const std::int64_t n : {1 << 10, 1 << 20}) needed.push_back({m, n});
  }
  const auto grid = sweep_grid(needed, {.extra = 64, .around_octaves = 0.5});
  ASSERT_EQ(grid.size(), 68u);
  for (const SweepShape& centre : needed) {
    int below = 0, above = 0;
    for (std::size_t i = needed.size(); i < grid.size(); i += 2) {  // every other one is around
      const double octaves[] = {
          std::log2(static_cast<double>(grid[i][0]) / static_cast<double>(centre[0])),
          std::log2(static_cast<double>(grid[i][1]) / static_cast<double>(centre[1]))};
      if (std::abs(octaves[0]) > 0.51 || std::abs(octaves[1]) > 0.51) continue;
      ++(octaves[0] < 0 ? below : above);
    }
    EXPECT_EQ(below + above, 8);
    EXPECT_NEAR(below, 4, 1);
  }
}

TEST(SweepGrid, ExtraPointsAreMultiplesAndBelowTheLimit) {
  const auto grid = sweep_grid(
      kNeeded, {.extra = 60, .multiples = {8, 64, 64}, .largest_product = 512.0 * 1536 * 1536});
  EXPECT_GT(grid.size(), 30u);
  for (std::size_t i = kNeeded.size(); i < grid.size(); ++i) {
    EXPECT_EQ(grid[i][0] % 8, 0);
    EXPECT_EQ(grid[i][1] % 64, 0);
    EXPECT_EQ(grid[i][2] % 64, 0);
    EXPECT_LE(grid[i][0] * grid[i][1] * grid[i][2], 512 * 1536 * 1536);
  }
}

TEST(SweepGrid, OneNeededShapeHasOnlySurroundings) {
  const auto grid = sweep_grid({{1024, 1024}}, {.extra = 12, .around_octaves = 1});
  ASSERT_EQ(grid.size(), 13u);
  int above = 0;
  for (const SweepShape& shape : grid) above += shape[0] > 1024 ? 1 : 0;
  EXPECT_NEAR(above, 6, 2);
}

TEST(SweepGrid, GivesFewerPointsWhereThereAreNoOthers) {
  // Around 2 by half an octave: 1.41 to 2.83 rounds to 1, 2 and 3.
  const auto grid = sweep_grid({{2}}, {.extra = 50});
  EXPECT_LE(grid.size(), 3u);
  EXPECT_TRUE(sweep_grid({}).empty());
}

}  // namespace
}  // namespace stepcast
