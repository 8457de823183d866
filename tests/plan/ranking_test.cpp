// SPDX-License-Identifier: Apache-2.0
#include "plan/ranking.h"

#include <gtest/gtest.h>

#include <random>

#include "plan/planning.h"

namespace stepcast {
namespace {

using Order = std::vector<std::size_t>;

TEST(OrderOfPlaces, AmongNearTiesTheSimplerGoesFirst) {
  const std::vector<double> values = {1.0, 1.009, 1.02};
  EXPECT_EQ(order_of_places(values, std::vector<Simplicity>{{1, 2, 5}, {1, 1, 9}, {0, 0, 1}}),
            (Order{1, 0, 2}));
  EXPECT_EQ(order_of_places(values, std::vector<Simplicity>{{1, 2, 5}, {2, 0, 1}, {0, 0, 1}}),
            (Order{0, 1, 2}));
  // Among equally simple ones the faster stands first, though it needs more memory.
  EXPECT_EQ(order_of_places(values, std::vector<Simplicity>{{1, 1, 5}, {1, 1, 4}, {0, 0, 1}}),
            (Order{0, 1, 2}));
}

TEST(OrderOfPlaces, LayoutsThatAForecastDoesNotTellApartStayTogether) {
  const std::vector<double> values = {1.0, 1.0, 1.005};
  EXPECT_EQ(order_of_places(values, std::vector<Simplicity>{{1, 3, 5}, {1, 1, 5}, {1, 2, 9}}),
            (Order{1, 0, 2}));
}

TEST(OrderOfPlaces, NoPlaceIsFarAboveTheBestThatIsLeft) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> value(1, 1.1);
  std::uniform_int_distribution<int> count(0, 3);
  for (int round = 0; round < 50; ++round) {
    std::vector<double> values;
    std::vector<Simplicity> simplicities;
    for (int i = 0; i < 40; ++i) {
      values.push_back(value(random));
      simplicities.push_back({count(random), count(random), count(random)});
    }
    const Order order = order_of_places(values, simplicities);
    ASSERT_EQ(order.size(), values.size());
    for (std::size_t place = 0; place < order.size(); ++place) {
      for (std::size_t later = place; later < order.size(); ++later) {
        EXPECT_LE(values[order[place]], values[order[later]] * (1 + kNearTie));
      }
    }
  }
}

// Counted against what each key would be if it were left out.
TEST(Simplicity, CountsAxesAndFlagsThatDifferFromTheDefaults) {
  const auto planner = planner_of(
      R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1","training":
          {"global_batch":16,"sequence_length":1024,"framework":"megatron"}})");
  ASSERT_NE(planner, nullptr);
  const Space& space = planner->space();
  Scenario scratch = space.base();
  bool seen_plain = false, seen_tensor = false;
  for (const LayoutChoice& choice : all_layouts(space)) {
    space.put(choice, scratch);
    const Layout l = scratch.layout;
    const Simplicity found = simplicity(space, choice, 7, scratch);
    EXPECT_EQ(found.memory, 7);
    EXPECT_EQ(found.axes, (l.tp > 1 ? 1 : 0) + (l.pp > 1 ? 1 : 0));
    const bool usual = l.zero == 1 && l.recompute.mode == RecomputeMode::kNone &&
                       l.order == Layout{}.order && !l.overlap.grad_reduce &&
                       !l.overlap.param_gather && !l.overlap.tp;
    if (usual && l.tp == 1 && l.pp == 1) {
      seen_plain = true;
      EXPECT_EQ(found.flags, 0);
    }
    if (usual && l.tp == 2 && l.pp == 1) {
      seen_tensor = true;
      EXPECT_EQ(found.flags, l.sequence_parallel ? 0 : 1);
    }
  }
  EXPECT_TRUE(seen_plain && seen_tensor);
}

}  // namespace
}  // namespace stepcast
