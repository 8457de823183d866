// SPDX-License-Identifier: Apache-2.0
#include "offers/pareto_front.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/seeded_random.h"

namespace stepcast {
namespace {

// Small integers, so that equal figures occur.
std::vector<ParetoFigures> random_figures(SeededRandom& random, std::size_t count) {
  std::vector<ParetoFigures> out;
  const auto draw = [&] { return static_cast<double>(random.below(6)); };
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back({draw(), draw(), draw(), {}});
    if (random.uniform() < 0.7) out.back().dollars = draw();
  }
  return out;
}

TEST(ParetoFront, HoldsWhatNothingDominatesAndNothingElse) {
  SeededRandom random(12);
  for (int round = 0; round < 200; ++round) {
    const auto figures = random_figures(random, 1 + static_cast<std::size_t>(round % 40));
    const auto front = pareto_front(figures);
    ASSERT_FALSE(front.empty());
    for (std::size_t i = 0; i < figures.size(); ++i) {
      const bool dominated = std::ranges::any_of(
          figures, [&](const ParetoFigures& other) { return dominates(other, figures[i]); });
      const auto same = [&](std::size_t j) {
        return figures[j].step_s == figures[i].step_s &&
               figures[j].device_bytes == figures[i].device_bytes &&
               figures[j].gpus == figures[i].gpus && figures[j].dollars == figures[i].dollars;
      };
      EXPECT_EQ(std::ranges::count_if(front, same), dominated ? 0 : 1);
    }
    EXPECT_TRUE(std::ranges::is_sorted(front, [&](std::size_t a, std::size_t b) {
      return figures[a].step_s < figures[b].step_s;
    }));
  }
}

TEST(ParetoFront, BetterInOneRegardIsEnough) {
  const ParetoFigures base{10, 10, 10, 10};
  EXPECT_FALSE(dominates(base, base));
  EXPECT_TRUE(dominates({9, 10, 10, 10}, base));
  EXPECT_TRUE(dominates({10, 10, 10, 9}, base));
  EXPECT_FALSE(dominates({9, 11, 10, 10}, base));
}

TEST(ParetoFront, NoPriceIsNeitherCheapNorDear) {
  EXPECT_FALSE(dominates({1, 1, 1, {}}, {2, 2, 2, 5}));
  EXPECT_FALSE(dominates({1, 1, 1, 1}, {2, 2, 2, {}}));
  EXPECT_TRUE(dominates({1, 1, 1, {}}, {2, 2, 2, {}}));
}

}  // namespace
}  // namespace stepcast
