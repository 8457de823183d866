// SPDX-License-Identifier: Apache-2.0
#include "plan/offers/pareto_points.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>

#include "core/json_tree.h"
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

// Whether one is at least as good in all regards and better in one.
bool dominates(const ParetoFigures& one, const ParetoFigures& other) {
  if (one.dollars.has_value() != other.dollars.has_value()) return false;
  const auto values = [](const ParetoFigures& f) {
    return std::array{f.step_s, f.device_bytes, f.gpus, f.dollars.value_or(0)};
  };
  const auto a = values(one), b = values(other);
  return a != b && std::ranges::equal(a, b, std::less_equal<>());
}

TEST(ParetoPoints, HoldWhatNothingDominatesAndNothingElse) {
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

TEST(ParetoPoints, BetterInOneRegardIsEnough) {
  const ParetoFigures base{10, 10, 10, 10};
  using Indices = std::vector<std::size_t>;
  EXPECT_EQ(pareto_front({base, base}), Indices{0});
  for (const ParetoFigures& better : {ParetoFigures{9, 10, 10, 10}, ParetoFigures{10, 9, 10, 10},
                                      ParetoFigures{10, 10, 9, 10}, ParetoFigures{10, 10, 10, 9}}) {
    EXPECT_EQ(pareto_front({base, better}), Indices{1});
  }
  EXPECT_EQ(pareto_front({base, {9, 11, 10, 10}}), (Indices{1, 0}));
}

TEST(ParetoPoints, NoPriceIsNeitherCheapNorDear) {
  EXPECT_EQ(pareto_front({{1, 1, 1, {}}, {2, 2, 2, 5}}).size(), 2u);
  EXPECT_EQ(pareto_front({{1, 1, 1, 1}, {2, 2, 2, {}}}).size(), 2u);
  EXPECT_EQ(pareto_front({{1, 1, 1, {}}, {2, 2, 2, {}}}).size(), 1u);
}

}  // namespace
}  // namespace stepcast
