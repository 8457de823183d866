// SPDX-License-Identifier: Apache-2.0
#include "layout/rank_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "core/each.h"
#include "layout/layout.h"
#include "schedule/schedule_kind.h"

namespace stepcast {
namespace {

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

constexpr Axis kDenseAxes[] = {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp};
constexpr Axis kExpertAxes[] = {Axis::kEtp, Axis::kEp, Axis::kEdp, Axis::kPp};

bool is_dense(AxisGroup group) {
  return group.is_within({Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp});
}

// Which ranks share a group, straight from the definition: their coordinates agree on every axis
// of the grid that the group does not span.
bool same_group(const RankGrid& grid, AxisGroup group, RankId a, RankId b) {
  for (const Axis axis : is_dense(group) ? kDenseAxes : kExpertAxes) {
    if (!group.spans(axis) && grid.coordinate(axis, a) != grid.coordinate(axis, b)) return false;
  }
  return true;
}

bool takes_part(AxisGroup group, const Layout& layout, GridPoint point) {
  return !group.ends_only() || point.pp == 0 || point.pp + 1 == layout.pp;
}

// Degrees of experts that the ranks of a stage allow.
void choose_experts(Layout& layout, std::mt19937& random) {
  const auto divisor_of = [&](std::int64_t number) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= number; ++d) {
      if (number % d == 0) divisors.push_back(d);
    }
    return divisors[random() % divisors.size()];
  };
  const std::int64_t stage = layout.tp * layout.cp * layout.dp;
  layout.etp = divisor_of(stage);
  layout.ep = divisor_of(stage / layout.etp);
}

std::vector<std::vector<int>> groups_of(const RankGrid& grid, AxisGroup group) {
  std::map<std::int32_t, std::vector<int>> found;
  for (std::int32_t i = 0; i < grid.size(); ++i) {
    const std::int32_t index = grid.group_of(group, RankId(i));
    if (index >= 0 && found[index].empty()) {
      for (const RankId member : grid.members(group, RankId(i))) {
        found[index].push_back(member.value);
      }
    }
  }
  std::vector<std::vector<int>> out;
  for (auto& [index, members] : found) out.push_back(members);
  return out;
}

using Groups = std::vector<std::vector<int>>;

TEST(RankGrid, TensorRanksAreNeighboursByDefault) {
  Layout layout;  // rank = tp + 2*(cp + 1*(dp + 2*pp))
  layout.tp = 2;
  layout.dp = 2;
  layout.pp = 3;
  const RankGrid grid(layout);
  EXPECT_EQ(grid.size(), 12);
  EXPECT_EQ(grid.members(AxisGroup::kTensor, RankId(5)), (std::vector{RankId(4), RankId(5)}));
  EXPECT_EQ(grid.members(AxisGroup::kData, RankId(5)), (std::vector{RankId(5), RankId(7)}));
  EXPECT_EQ(grid.members(AxisGroup::kPipeline, RankId(5)),
            (std::vector{RankId(1), RankId(5), RankId(9)}));
  EXPECT_EQ(grid.members(AxisGroup::kEmbedding, RankId(9)), (std::vector{RankId(1), RankId(9)}));
  EXPECT_EQ(grid.group_of(AxisGroup::kEmbedding, RankId(5)), -1);
  EXPECT_TRUE(grid.members(AxisGroup::kEmbedding, RankId(5)).empty());
}

TEST(RankGrid, TheOrderDecidesWhoAreNeighbours) {
  Layout layout;
  layout.tp = 2;
  layout.pp = 4;
  layout.order = "pp-tp-cp-ep-dp";
  const RankGrid grid(layout);
  EXPECT_EQ(grid.members(AxisGroup::kPipeline, RankId(5)),
            (std::vector{RankId(4), RankId(5), RankId(6), RankId(7)}));
  EXPECT_EQ(grid.members(AxisGroup::kTensor, RankId(1)), (std::vector{RankId(1), RankId(5)}));
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
  AtLeast groups(25);
  for (int round = 0; round < 25; ++round) {
    Layout layout = random_layout(random);
    choose_experts(layout, random);
    const RankGrid grid(layout);
    for (const auto& [name, group] : each_of(named_groups())) {
      if (group != group.whole()) continue;  // a part of a group is no matter of axes
      ++groups;
      for (std::int32_t i = 0; i < grid.size(); ++i) {
        const RankId rank(i);
        std::set<RankId> expected;
        for (std::int32_t other = 0; other < grid.size(); ++other) {
          if (takes_part(group, layout, grid.point(rank)) &&
              takes_part(group, layout, grid.point(RankId(other))) &&
              same_group(grid, group, rank, RankId(other))) {
            expected.insert(RankId(other));
          }
        }
        const std::vector<RankId> members = grid.members(group, rank);
        ASSERT_EQ(std::set(members.begin(), members.end()), expected) << layout.order << name;
        ASSERT_EQ(members.size(), expected.size());
      }
    }
  }
}

// Cuts the data and the context group into parts of some size.
void choose_parts(Layout& layout, std::mt19937& random) {
  const auto divisor_of = [&](std::int64_t number) {
    std::int64_t out = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(number));
    while (number % out != 0) --out;
    return out;
  };
  layout.shard_group = divisor_of(layout.dp * layout.cp);
  layout.cp_exchange = divisor_of(layout.cp);
}

TEST(RankGrid, EveryGroupPartitionsItsRanksAndItsMembersAgree) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    Layout layout = random_layout(random);
    choose_experts(layout, random);
    choose_parts(layout, random);
    if (layout.pp % 2 == 0 && round % 2 == 0) {
      layout.schedule = schedule_named("dualpipe");
      layout.shard_group = 0;
    }
    const RankGrid grid(layout);
    for (const auto& [name, group] : each_of(named_groups())) {
      std::map<std::int32_t, std::set<RankId>> groups;
      for (std::int32_t i = 0; i < grid.size(); ++i) {
        const std::int32_t index = grid.group_of(group, RankId(i));
        if (index < 0) continue;
        groups[index].insert(RankId(i));
        const std::vector<RankId> members = grid.members(group, RankId(i));
        const auto place = static_cast<std::size_t>(grid.place_in(group, RankId(i)));
        ASSERT_LT(place, members.size()) << name;
        ASSERT_EQ(members[place], RankId(i)) << name << " " << layout.order;
        ASSERT_EQ(members, grid.members(group, members.front())) << name;
      }
      ASSERT_EQ(static_cast<std::int64_t>(groups.size()), grid.group_count(group)) << name;
      const auto& [first, last] = std::ranges::minmax(grid.members(group, RankId(0)));
      ASSERT_EQ(grid.reach(group), last.value - first.value + 1) << name << " " << layout.order;
      ASSERT_EQ(groups.begin()->first, 0);
      ASSERT_EQ(groups.rbegin()->first + 1, grid.group_count(group));
      RankId lowest;
      for (const auto& [index, ranks] : groups) {
        ASSERT_EQ(static_cast<std::int64_t>(ranks.size()), grid.group_size(group)) << name;
        ASSERT_EQ(grid.group_size(group), size_of(group, layout)) << name;
        const bool counts_up = is_dense(group) && group == group.whole();
        ASSERT_TRUE(!counts_up || lowest < *ranks.begin()) << name;
        lowest = *ranks.begin();
      }
    }
  }
}

// DualPipe: stages 0 and 3 hold the same parameters, and so do 1 and 2. The data groups of both are
// one; ranks that read different text are those of a stage.
TEST(RankGrid, DataGroupsJoinTheStagesThatMirrorEachOther) {
  Layout layout;
  layout.pp = 4;
  layout.dp = 2;
  layout.ep = 2;
  layout.virtual_stages = 2;
  layout.schedule = schedule_named("dualpipe");
  const RankGrid grid(layout);
  EXPECT_EQ(groups_of(grid, AxisGroup::kData), (Groups{{0, 1, 6, 7}, {2, 3, 4, 5}}));
  EXPECT_EQ(groups_of(grid, AxisGroup::kDataShard), (Groups{{0, 1, 6, 7}, {2, 3, 4, 5}}));
  EXPECT_EQ(groups_of(grid, AxisGroup::kExpertData), (Groups{{0, 6}, {1, 7}, {2, 4}, {3, 5}}));
  EXPECT_EQ(groups_of(grid, AxisGroup::kExpert), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(groups_of(grid, AxisGroup::kReplicas), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(grid.group_size(AxisGroup::kData), 4);
  EXPECT_EQ(size_of(AxisGroup::kData, layout), 4);
  EXPECT_EQ(grid.group_count(AxisGroup::kExpertData), 4);
  EXPECT_EQ(grid.place_in(AxisGroup::kData, RankId(6)), 2);
  EXPECT_EQ(grid.coordinate(Axis::kEdp, RankId(6)), 0);
  EXPECT_EQ(grid.reach(AxisGroup::kData), 8);
  layout.order = "pp-tp-cp-ep-dp";
  EXPECT_EQ(groups_of(RankGrid(layout), AxisGroup::kData), (Groups{{0, 3, 4, 7}, {1, 2, 5, 6}}));
  EXPECT_EQ(groups_of(RankGrid(layout), AxisGroup::kExpertData),
            (Groups{{0, 3}, {4, 7}, {1, 2}, {5, 6}}));
}

TEST(RankGrid, SizesMultiplyAndExpertsFillTheirStage) {
  std::mt19937 random(4);
  for (int round = 0; round < 50; ++round) {
    Layout layout = random_layout(random);
    choose_experts(layout, random);
    const RankGrid grid(layout);
    const std::int64_t stage =
        grid.group_size(AxisGroup::kTensor) * grid.group_size(AxisGroup::kData);
    EXPECT_EQ(stage * layout.pp, grid.group_size(AxisGroup::kWorld));
    EXPECT_EQ(grid.group_size(AxisGroup::kData),
              grid.group_size(AxisGroup::kContext) * grid.group_size(AxisGroup::kReplicas));
    EXPECT_EQ(grid.group_size(AxisGroup::kModel),
              grid.group_size(AxisGroup::kTensor) * grid.group_size(AxisGroup::kPipeline));
    EXPECT_EQ(grid.group_size(AxisGroup::kTensorExpert) * grid.group_size(AxisGroup::kExpertData),
              stage);
    // All ranks of a stage, as dense layers and as experts see them.
    const AxisGroup dense{Axis::kTp, Axis::kCp, Axis::kDp};
    const AxisGroup expert{Axis::kEtp, Axis::kEp, Axis::kEdp};
    for (std::int32_t i = 0; i < grid.size(); ++i) {
      ASSERT_EQ(grid.members(dense, RankId(i)), grid.members(expert, RankId(i)));
    }
  }
}

// The examples in Megatron's own comments: megatron/core/parallel_state.py,
// initialize_model_parallel (16 GPUs, tp 2, pp 4) and RankGenerator (order tp-pp-dp of 2-2-2).
TEST(RankGrid, DenseGroupsAreThoseThatMegatronDocuments) {
  Layout layout;
  layout.tp = 2;
  layout.pp = 4;
  layout.dp = 2;
  const RankGrid grid(layout);
  EXPECT_EQ(groups_of(grid, AxisGroup::kData),
            (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(groups_of(grid, AxisGroup::kTensor),
            (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
  EXPECT_EQ(groups_of(grid, AxisGroup::kPipeline),
            (Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));

  Layout pipeline_first;
  pipeline_first.tp = pipeline_first.pp = pipeline_first.dp = 2;
  pipeline_first.order = "tp-cp-ep-pp-dp";
  EXPECT_EQ(groups_of(RankGrid(pipeline_first), AxisGroup::kData),
            (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

// Megatron's second RankGenerator (tp = etp, ep, dp = edp, cp = 1), written out: 16 ranks of two
// stages, tp 2 x cp 2 x dp 2 folded into etp 1 x ep 4 x edp 2.
TEST(RankGrid, ExpertsFoldTheRanksOfAStageAsMegatronDoes) {
  Layout layout;
  layout.tp = layout.cp = layout.dp = layout.pp = 2;
  layout.etp = 1;
  layout.ep = 4;
  const RankGrid grid(layout);
  EXPECT_EQ(groups_of(grid, AxisGroup::kExpert),
            (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}}));
  EXPECT_EQ(groups_of(grid, AxisGroup::kExpertData),
            (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}}));
  layout.etp = 2;
  layout.ep = 2;
  EXPECT_EQ(groups_of(RankGrid(layout), AxisGroup::kExpertTensor),
            (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
  EXPECT_EQ(groups_of(RankGrid(layout), AxisGroup::kExpert),
            (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
}

TEST(AxisGroup, GroupsWithoutANameAreCalledByTheirAxes) {
  for (const auto& [name, group] : each_of(named_groups())) {
    EXPECT_EQ(name_of(group), name);
  }
  EXPECT_EQ(name_of({Axis::kTp, Axis::kCp}), "tp-cp");
}

TEST(AxisGroup, IsFoundByItsName) {
  for (const auto& [name, group] : each_of(named_groups())) EXPECT_EQ(group_named(name), group);
  const AxisGroup replicas_of_tp{Axis::kTp, Axis::kDp};  // "dp" alone spans cp too
  EXPECT_EQ(group_named(name_of(replicas_of_tp)), replicas_of_tp);
  for (const char* wrong : {"", "-", "tp-", "tensor", "tp-tensor"}) {
    EXPECT_FALSE(group_named(wrong)) << wrong;
  }
}

TEST(AxisGroup, TablesAreInTheOrderOfTheirValues) {
  EXPECT_TRUE(std::ranges::is_sorted(named_groups(), {}, &NamedGroup::group));
  ASSERT_EQ(all_axes().size(), kAxisCount);
  for (std::size_t i = 0; i < kAxisCount; ++i) {
    EXPECT_EQ(all_axes()[i].axis, static_cast<Axis>(i));
  }
}

// Whose traffic waits: experts that are cut by tensor parallel ranks wait for that, and what joins
// stages with others waits for nobody in particular.
TEST(AxisGroup, SaysWhoseTrafficItCarries) {
  const auto of = [](AxisGroup group) { return traffic_of(group); };
  EXPECT_EQ(of(AxisGroup::kTensor), TrafficKind::kTensor);
  EXPECT_EQ(of(AxisGroup::kContext), TrafficKind::kContext);
  EXPECT_EQ(of(AxisGroup::kContextInner), TrafficKind::kContext);
  EXPECT_EQ(of(AxisGroup::kData), TrafficKind::kData);
  EXPECT_EQ(of(AxisGroup::kDataShard), TrafficKind::kData);
  EXPECT_EQ(of({Axis::kTp, Axis::kCp, Axis::kDp}), TrafficKind::kData);
  EXPECT_EQ(of(AxisGroup::kPipeline), TrafficKind::kPipeline);
  EXPECT_EQ(of(AxisGroup::kEmbedding), TrafficKind::kPipeline);
  EXPECT_EQ(of(AxisGroup::kExpertTensor), TrafficKind::kTensor);
  EXPECT_EQ(of(AxisGroup::kTensorExpert), TrafficKind::kExpert);
  EXPECT_EQ(of(AxisGroup::kExpertData), TrafficKind::kData);
  EXPECT_FALSE(of(AxisGroup::kModel));
  EXPECT_FALSE(of(AxisGroup::kWorld));
  for (const AxisRow& row : all_axes()) EXPECT_EQ(of({row.axis}), row.traffic) << row.name;
}

// The word of every axis, and no other: a grid is numbered by it.
TEST(AxisGroup, TheUsualOrderHasTheWordsOfTheAxes) {
  std::set<std::string> of_axes, of_order;
  std::size_t words = 0;
  for (const AxisRow& row : all_axes()) of_axes.insert(row.in_order);
  for_each_word(kUsualOrder, [&](std::string_view word) {
    of_order.emplace(word);
    ++words;
  });
  EXPECT_EQ(of_order, of_axes);
  EXPECT_EQ(of_order.size(), words);
}

}  // namespace
}  // namespace stepcast
