// SPDX-License-Identifier: Apache-2.0
#include "layout/rank_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace stepcast {
namespace {

constexpr GroupKind kKinds[] = {GroupKind::kTensor,   GroupKind::kContext,   GroupKind::kData,
                                GroupKind::kPipeline, GroupKind::kEmbedding, GroupKind::kModel,
                                GroupKind::kWorld};

Layout random_layout(std::mt19937& random) {
  const auto degree = [&] { return std::uniform_int_distribution<std::int64_t>(1, 5)(random); };
  Layout layout;
  layout.tp = degree();
  layout.cp = degree();
  layout.dp = degree();
  layout.pp = degree();
  std::vector<std::string> axes = {"tp", "cp", "ep", "dp", "pp"};
  std::ranges::shuffle(axes, random);
  layout.order = axes[0] + "-" + axes[1] + "-" + axes[2] + "-" + axes[3] + "-" + axes[4];
  return layout;
}

// Which ranks share a group, straight from the definition in rank_grid.h.
bool same_group(GroupKind kind, GridPoint a, GridPoint b) {
  switch (kind) {
    case GroupKind::kTensor:
      return a.cp == b.cp && a.dp == b.dp && a.pp == b.pp;
    case GroupKind::kContext:
      return a.tp == b.tp && a.dp == b.dp && a.pp == b.pp;
    case GroupKind::kData:
      return a.tp == b.tp && a.pp == b.pp;
    case GroupKind::kPipeline:
    case GroupKind::kEmbedding:
      return a.tp == b.tp && a.cp == b.cp && a.dp == b.dp;
    case GroupKind::kModel:
      return a.cp == b.cp && a.dp == b.dp;
    case GroupKind::kWorld:
      return true;
  }
  return false;
}

bool takes_part(GroupKind kind, const Layout& layout, GridPoint point) {
  return kind != GroupKind::kEmbedding || point.pp == 0 || point.pp + 1 == layout.pp;
}

TEST(RankGrid, TensorRanksAreNeighboursByDefault) {
  Layout layout;  // rank = tp + 2*(cp + 1*(dp + 2*pp))
  layout.tp = 2;
  layout.dp = 2;
  layout.pp = 3;
  const RankGrid grid(layout);
  EXPECT_EQ(grid.size(), 12);
  EXPECT_EQ(grid.members(GroupKind::kTensor, RankId(5)), (std::vector{RankId(4), RankId(5)}));
  EXPECT_EQ(grid.members(GroupKind::kData, RankId(5)), (std::vector{RankId(5), RankId(7)}));
  EXPECT_EQ(grid.members(GroupKind::kPipeline, RankId(5)),
            (std::vector{RankId(1), RankId(5), RankId(9)}));
  EXPECT_EQ(grid.members(GroupKind::kEmbedding, RankId(9)), (std::vector{RankId(1), RankId(9)}));
  EXPECT_EQ(grid.group_of(GroupKind::kEmbedding, RankId(5)), -1);
  EXPECT_TRUE(grid.members(GroupKind::kEmbedding, RankId(5)).empty());
}

TEST(RankGrid, TheOrderDecidesWhoAreNeighbours) {
  Layout layout;
  layout.tp = 2;
  layout.pp = 4;
  layout.order = "pp-tp-cp-ep-dp";
  const RankGrid grid(layout);
  EXPECT_EQ(grid.members(GroupKind::kPipeline, RankId(5)),
            (std::vector{RankId(4), RankId(5), RankId(6), RankId(7)}));
  EXPECT_EQ(grid.members(GroupKind::kTensor, RankId(1)), (std::vector{RankId(1), RankId(5)}));
}

TEST(RankGrid, PointsAndRanksAreABijection) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    const Layout layout = random_layout(random);
    const RankGrid grid(layout);
    ASSERT_EQ(grid.size(), layout.tp * layout.cp * layout.dp * layout.pp);
    for (std::int64_t i = 0; i < grid.size(); ++i) {
      const RankId rank(static_cast<std::int32_t>(i));
      const GridPoint point = grid.point(rank);
      ASSERT_EQ(grid.rank(point), rank);
      ASSERT_TRUE(point.tp < layout.tp && point.cp < layout.cp && point.dp < layout.dp &&
                  point.pp < layout.pp);
    }
  }
}

TEST(RankGrid, GroupsHoldExactlyTheRanksThatTheDefinitionPutsTogether) {
  std::mt19937 random(2);
  for (int round = 0; round < 25; ++round) {
    const Layout layout = random_layout(random);
    const RankGrid grid(layout);
    for (const GroupKind kind : kKinds) {
      for (std::int32_t i = 0; i < grid.size(); ++i) {
        const RankId rank(i);
        std::vector<RankId> expected;
        for (std::int32_t other = 0; other < grid.size(); ++other) {
          const GridPoint point = grid.point(RankId(other));
          if (takes_part(kind, layout, grid.point(rank)) && takes_part(kind, layout, point) &&
              same_group(kind, grid.point(rank), point)) {
            expected.push_back(RankId(other));
          }
        }
        ASSERT_EQ(grid.members(kind, rank), expected) << layout.order << " " << name_of(kind);
      }
    }
  }
}

TEST(RankGrid, GroupIndicesAreDenseAndCountUpWithTheLowestMember) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    const Layout layout = random_layout(random);
    const RankGrid grid(layout);
    for (const GroupKind kind : kKinds) {
      std::map<std::int32_t, std::set<RankId>> groups;
      for (std::int32_t i = 0; i < grid.size(); ++i) {
        const std::int32_t group = grid.group_of(kind, RankId(i));
        if (group >= 0) groups[group].insert(RankId(i));
      }
      ASSERT_EQ(static_cast<std::int64_t>(groups.size()), grid.group_count(kind));
      ASSERT_EQ(groups.begin()->first, 0);
      ASSERT_EQ(groups.rbegin()->first + 1, grid.group_count(kind));
      RankId lowest;
      for (const auto& [group, ranks] : groups) {
        ASSERT_EQ(static_cast<std::int64_t>(ranks.size()), grid.group_size(kind));
        ASSERT_LT(lowest, *ranks.begin());
        lowest = *ranks.begin();
      }
    }
  }
}

}  // namespace
}  // namespace stepcast
