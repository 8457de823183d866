// SPDX-License-Identifier: Apache-2.0
// Sharded parameters on pipelines and beside experts on other ranks: what a step gathers and
// reduces, over which ranks, and what stays whole meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/each.h"
#include "expert_scenarios.h"
#include "program/program.h"
#include "program/walk.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::ExpertCase;
using testing::gpt;
using testing::GptCase;

constexpr int kStagedBatches = 6;

GptCase staged_case(const std::string& framework, int zero) {
  GptCase c;
  c.framework = framework;
  c.zero = zero;
  c.dropout = 0;
  c.tied = false;
  c.attention = "flash";
  c.layers = 8;
  c.pp = 2;
  c.dp = 4;
  c.global_batch = c.dp * kStagedBatches;
  return c;
}

using MovedBytes = std::map<std::pair<std::string, CollectiveKind>, ByteCount>;

// Bytes of a step by group and kind, gradients and parameters alone.
MovedBytes moved_by_role(const Role& role) {
  MovedBytes out;
  for (const Instruction& what : role.instructions) {
    const auto* call = what.as<CollectiveCall>();
    if (call == nullptr) continue;
    if (call->purpose != Purpose::kGradients && call->purpose != Purpose::kParameters) continue;
    std::string group = name_of(call->group.whole());
    if (call->group.is_inner()) group += " inside";
    if (call->group.is_outer()) group += " across";
    out[{group, call->message.kind}] += call->message.bytes;
  }
  return out;
}

// Buffers that live outside blocks at the step's peak of them, over 2 bytes for each parameter.
double whole_copies(const Role& role) {
  constexpr auto kBuffers = static_cast<std::size_t>(MemoryCategory::kBuffers);
  ByteCount live = 0, most = 0;
  for (const Instruction& what : role.instructions) {
    live += what.birth[kBuffers];
    most = std::max(most, live);
    live -= what.death[kBuffers];
  }
  EXPECT_EQ(live, 0);
  return static_cast<double>(most) / (2.0 * static_cast<double>(role.parameters));
}

constexpr auto kGathers = CollectiveKind::kAllGather;
constexpr auto kScatters = CollectiveKind::kReduceScatter;

// torch.distributed.pipelining reduces once a step. Without resharding a chunk is gathered once.
TEST(ShardedPipeline, OfFsdpWithZero2GathersAndReducesOnce) {
  for (const char* schedule : each_of(std::vector{"1f1b", "gpipe", "zb-h1"})) {
    GptCase c = staged_case("fsdp", 2);
    c.schedule = schedule;
    const Program program = lower(gpt(c));
    for (const Role& role : each_of(program.roles)) {
      const MovedBytes step = moved_by_role(role);
      EXPECT_EQ(step.at({"dp", kGathers}), 2 * role.parameters) << schedule;
      EXPECT_EQ(step.at({"dp", kScatters}), 4 * role.parameters) << schedule;
      EXPECT_EQ(step.size(), 2U);
    }
  }
}

// A forward frees what it has used and a backward does not: each forward makes the pass behind it
// gather, and the first pass gathers too. So does each chunk of a stage by itself.
TEST(ShardedPipeline, OfFsdpWithZero3GathersOnceMoreThanItHasMicroBatches) {
  GptCase c = staged_case("fsdp", 3);
  for (const int chunks : each_of(std::vector{1, 2})) {
    c.virtual_stages = chunks;
    if (chunks > 1) c.schedule = "interleaved";
    const Program program = lower(gpt(c));
    for (const Role& role : each_of(program.roles)) {
      const MovedBytes step = moved_by_role(role);
      EXPECT_EQ(step.at({"dp", kGathers}), 2 * role.parameters * (kStagedBatches + 1));
      EXPECT_EQ(step.at({"dp", kScatters}), 4 * role.parameters);
    }
  }
}

// 2 bytes of parameters and 4 of gradients for each parameter of the stage, and a fresh gradient of
// the largest unit in 2: 3 to 4 times 2 bytes.
TEST(ShardedPipeline, OfFsdpHoldsParametersAndWideGradientsWhole) {
  const Program program = lower(gpt(staged_case("fsdp", 2)));
  for (const Role& role : each_of(program.roles)) {
    std::int64_t largest = 0;
    for_each_block(program, role, [&](const Block& block) {
      largest = std::max(largest, block.parameters.total());
    });
    const double fresh = static_cast<double>(largest) / static_cast<double>(role.parameters);
    EXPECT_NEAR(whole_copies(role), 3 + fresh, 1e-9);
  }
}

// Megatron-FSDP reduces each micro-batch (grad_reduce_every_bprop), and gathers for each pass.
TEST(ShardedPipeline, OfMegatronWithZero3ReducesEachMicroBatch) {
  const Program program = lower(gpt(staged_case("megatron", 3)));
  for (const Role& role : each_of(program.roles)) {
    const MovedBytes step = moved_by_role(role);
    EXPECT_EQ(step.at({"dp", kGathers}), 2 * 2 * role.parameters * kStagedBatches);
    EXPECT_EQ(step.at({"dp", kScatters}), 4 * role.parameters * kStagedBatches);
    EXPECT_LT(whole_copies(role), 3);
  }
}

TEST(ShardedPipeline, WithZero2ReducesEachMicroBatchAndGathersTheUpdate) {
  for (const char* framework : each_of(std::vector{"megatron", "native"})) {
    const Scenario scenario = gpt(staged_case(framework, 2));
    const ByteCount width = size_of(scenario.training.reduce_precision);
    const Program program = lower(scenario);
    for (const Role& role : each_of(program.roles)) {
      const MovedBytes step = moved_by_role(role);
      EXPECT_EQ(step.at({"dp", kGathers}), 2 * role.parameters);
      EXPECT_EQ(step.at({"dp", kScatters}), width * role.parameters * kStagedBatches);
    }
  }
}

// Norms' gradients come with the input gradients, those of matrices later: one reduction a step.
TEST(ShardedPipeline, WithBackwardsApartSumsTheWholeStep) {
  for (const int zero : each_of(std::vector{2, 3})) {
    GptCase c = staged_case("native", zero);
    c.schedule = "zb-h1";
    const Scenario scenario = gpt(c);
    const ByteCount width = size_of(scenario.training.reduce_precision);
    const Program program = lower(scenario);
    for (const Role& role : each_of(program.roles)) {
      EXPECT_EQ(moved_by_role(role).at({"dp", kScatters}), width * role.parameters) << zero;
    }
  }
}

// The two ends hold the same rows of a shared table, so that each sums its part alone.
TEST(ShardedPipeline, ASharedTableIsSummedInShards) {
  GptCase c = staged_case("fsdp", 2);
  c.tied = true;
  const Scenario scenario = gpt(c);
  const Program program = lower(scenario);
  const std::int64_t table = scenario.padded_vocab() * scenario.model.hidden;
  for (const Role& role : each_of(program.roles)) {
    const auto tied = std::ranges::find_if(role.instructions, [](const Instruction& what) {
      const auto* call = what.as<CollectiveCall>();
      return call != nullptr && call->purpose == Purpose::kTiedTable;
    });
    ASSERT_NE(tied, role.instructions.end());
    EXPECT_EQ(tied->as<CollectiveCall>()->message.bytes, 4 * table / c.dp);
  }
}

ExpertCase sharded_experts(int ep) {
  ExpertCase c;
  c.zero = 3;
  c.ep = ep;
  c.dp = 8;
  c.global_batch = 16;
  return c;
}

Scenario with_fsdp(const ExpertCase& c) {
  std::string text = testing::text_of(c);
  text.replace(text.find("megatron"), 8, "fsdp");
  return testing::scenario_from(text);
}

// Elements of the role's dense parameters and of its experts.
std::pair<std::int64_t, std::int64_t> dense_and_experts(const Role& role) {
  return {role.stretch(AxisGroup::kData)->range.size(),
          role.stretch(AxisGroup::kExpertData)->range.size()};
}

// Two micro-batches; layers are gathered twice in each, the root once (torchtitan: experts of a
// block use the mesh efsdp inside the same unit).
TEST(ShardedExperts, MoveOverTheirOwnRanksBesideTheDensePart) {
  const Program program = lower(with_fsdp(sharded_experts(4)));
  const Role& role = program.roles[0];
  const auto [dense, experts] = dense_and_experts(role);
  const std::vector<BlockId>& blocks = role.chunks[0].blocks;
  const std::int64_t root = program.block(blocks.front()).parameters.total() +
                            program.block(blocks.back()).parameters.total();
  const MovedBytes step = moved_by_role(role);
  EXPECT_EQ(step.at({"dp", kGathers}), 2 * 2 * (2 * (dense - root) + root));
  EXPECT_EQ(step.at({"edp", kGathers}), 2 * 2 * 2 * experts);
  EXPECT_EQ(step.at({"dp", kScatters}), 2 * 4 * dense);
  EXPECT_EQ(step.at({"edp", kScatters}), 2 * 4 * experts);
  // 16 experts of 3 matrices in two layers, a quarter of them here; shards in two ranks of the
  // eight.
  EXPECT_EQ(experts, 2 * 4 * 3 * 1024 * 512);
  EXPECT_EQ(size_of(AxisGroup::kExpertData, with_fsdp(sharded_experts(4)).layout), 2);
}

// HSDP: experts have as many copies as the dense parameters. ep 4 of shards among 4 leaves one rank
// for each expert inside a copy, and two copies.
TEST(ShardedExperts, OfHybridShardingHaveTheCopiesOfTheDensePart) {
  using Ranks = std::pair<int, int>;  // expert parallel, and of one expert inside a copy
  for (const auto& [ep, inside] : each_of(std::vector{Ranks{2, 2}, Ranks{4, 1}})) {
    ExpertCase c = sharded_experts(ep);
    c.more_layout = R"(,"shard_group":4)";
    const Scenario scenario = with_fsdp(c);
    EXPECT_EQ(size_of(AxisGroup::kDataCopies, scenario.layout), 2);
    EXPECT_EQ(size_of(AxisGroup::kExpertData.inner(), scenario.layout), inside) << ep;
    EXPECT_EQ(size_of(AxisGroup::kExpertData.outer(), scenario.layout), 2) << ep;
    const Role role = lower(scenario).roles[0];
    const std::int64_t experts = dense_and_experts(role).second;
    const MovedBytes step = moved_by_role(role);
    EXPECT_EQ(step.at({"edp across", CollectiveKind::kAllReduce}), 2 * 4 * experts / inside);
  }
}

// No expert has a copy if expert parallel ranks reach over the copies.
TEST(ShardedExperts, ThatReachOverCopiesHaveNone) {
  ExpertCase c = sharded_experts(8);
  c.more_layout = R"(,"shard_group":4)";
  const Scenario scenario = with_fsdp(c);
  EXPECT_EQ(size_of(AxisGroup::kExpertData, scenario.layout), 1);
  EXPECT_EQ(size_of(AxisGroup::kExpertData.outer(), scenario.layout), 1);
}

TEST(ShardedExperts, OnAPipelineAreReducedOnce) {
  ExpertCase c = sharded_experts(2);
  c.pp = 2;
  c.zero = 2;
  c.layers = 4;
  const Program program = lower(with_fsdp(c));
  for (const Role& role : each_of(program.roles)) {
    const auto [dense, experts] = dense_and_experts(role);
    const MovedBytes step = moved_by_role(role);
    EXPECT_EQ(step.at({"dp", kGathers}), 2 * dense);
    EXPECT_EQ(step.at({"edp", kGathers}), 2 * experts);
    EXPECT_EQ(step.at({"dp", kScatters}), 4 * dense);
    EXPECT_EQ(step.at({"edp", kScatters}), 4 * experts);
  }
}

}  // namespace
}  // namespace stepcast
