// SPDX-License-Identifier: Apache-2.0
// States that are sharded inside groups of ranks, with a copy in each: n ranks of N share one copy.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "layout/rank_grid.h"
#include "memory/states.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

GptCase sharded(const std::string& framework, int zero, int group) {
  GptCase c;
  c.framework = framework;
  c.dropout = 0;
  c.tied = false;
  c.attention = "flash";
  c.dp = 8;
  c.zero = zero;
  if (group > 0) c.extra_layout = R"(, "shard_group": )" + std::to_string(group);
  return c;
}

// Counts bytes of one step by the group and the kind of collective.
std::map<std::pair<std::string, CollectiveKind>, ByteCount> moved(const Program& program) {
  std::map<std::pair<std::string, CollectiveKind>, ByteCount> out;
  for (const Instruction& what : program.roles[0].instructions) {
    const auto* call = what.as<CollectiveCall>();
    if (call == nullptr) continue;
    if (call->purpose != Purpose::kGradients && call->purpose != Purpose::kParameters) continue;
    out[{name_of(call->group), call->message.kind}] += call->message.bytes;
  }
  return out;
}

// FSDP: two gathers and a reduce-scatter of P in the group, and an all-reduce of P/n among copies.
TEST(HybridSharding, OfFsdpSumsShardsOverTheCopies) {
  const Program all = lower(gpt(sharded("fsdp", 3, 0))), half = lower(gpt(sharded("fsdp", 3, 4)));
  const auto whole = moved(all), part = moved(half);
  const ByteCount gathered = whole.at({"dp", CollectiveKind::kAllGather});
  const ByteCount reduced = whole.at({"dp", CollectiveKind::kReduceScatter});
  EXPECT_EQ(part.at({"dp-shard", CollectiveKind::kAllGather}), gathered);
  EXPECT_EQ(part.at({"dp-shard", CollectiveKind::kReduceScatter}), reduced);
  EXPECT_EQ(part.at({"dp-copies", CollectiveKind::kAllReduce}), reduced / 4);
  EXPECT_EQ(whole.count({"dp-copies", CollectiveKind::kAllReduce}), 0U);
}

TEST(HybridSharding, OfMegatronHasSeveralOptimizerInstances) {
  const Program program = lower(gpt(sharded("megatron", 1, 2)));
  const ByteCount parameters = program.roles[0].parameters;
  const auto part = moved(program);
  EXPECT_EQ(part.at({"dp-shard", CollectiveKind::kReduceScatter}), 4 * parameters);
  EXPECT_EQ(part.at({"dp-copies", CollectiveKind::kAllReduce}), 4 * parameters / 2);
  EXPECT_EQ(part.at({"dp-shard", CollectiveKind::kAllGather}), 2 * parameters);
}

// Megatron-FSDP: every state is sharded, units are gathered twice and reduced once a micro-batch.
TEST(HybridSharding, OfMegatronWithZero3ShardsAll18Bytes) {
  GptCase c = sharded("megatron", 3, 0);
  c.global_batch = 8;
  const Scenario scenario = gpt(c);
  EXPECT_TRUE(scenario.layout.overlap.grad_reduce && scenario.layout.overlap.param_gather);
  EXPECT_EQ(state_bytes(scenario, 1000).total(), 18 * 125);
  c.zero = 2;
  EXPECT_EQ(state_bytes(gpt(c), 1000).total(), 2 * 1000 + 16 * 125);
  const Program program = lower(scenario);
  const auto whole = moved(program);
  const Block& layer = program.block(program.roles[0].chunks[0].blocks[1]);
  const ByteCount layers = c.layers * layer.parameters.total();
  const ByteCount root = program.roles[0].parameters - layers;
  EXPECT_EQ(whole.at({"dp", CollectiveKind::kAllGather}), 2 * (2 * layers + root));
  EXPECT_EQ(whole.at({"dp", CollectiveKind::kReduceScatter}), 4 * (layers + root));
}

TEST(HybridSharding, ShardsStatesInsideTheGroupAlone) {
  const Scenario scenario = gpt(sharded("megatron", 1, 2));
  EXPECT_EQ(state_bytes(scenario, 1000).optimizer, 12 * 500);
  EXPECT_EQ(state_bytes(gpt(sharded("megatron", 1, 0)), 1000).optimizer, 12 * 125);
}

TEST(HybridSharding, GroupsAreNeighboursAndCopiesStandAtOnePlace) {
  const RankGrid grid(gpt(sharded("fsdp", 3, 4)).layout);
  EXPECT_EQ(grid.group_size(AxisGroup::kDataShard), 4);
  EXPECT_EQ(grid.group_size(AxisGroup::kDataCopies), 2);
  EXPECT_EQ(grid.group_count(AxisGroup::kDataShard), 2);
  EXPECT_EQ(grid.group_count(AxisGroup::kDataCopies), 4);
  const auto ids = [](std::initializer_list<int> values) {
    std::vector<RankId> out;
    for (const int value : values) out.emplace_back(value);
    return out;
  };
  EXPECT_EQ(grid.members(AxisGroup::kDataShard, RankId(5)), ids({4, 5, 6, 7}));
  EXPECT_EQ(grid.members(AxisGroup::kDataCopies, RankId(5)), ids({1, 5}));
  EXPECT_EQ(grid.place_in(AxisGroup::kDataShard, RankId(5)), 1);
  EXPECT_EQ(grid.place_in(AxisGroup::kDataCopies, RankId(5)), 1);
  for (const AxisGroup group : {AxisGroup::kDataShard, AxisGroup::kDataCopies}) {
    for (int r = 0; r < 8; ++r) {
      for (const RankId other : grid.members(group, RankId(r))) {
        EXPECT_EQ(grid.group_of(group, other), grid.group_of(group, RankId(r)));
      }
    }
  }
}

}  // namespace
}  // namespace stepcast
