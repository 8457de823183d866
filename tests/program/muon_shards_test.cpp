// SPDX-License-Identifier: Apache-2.0
// Muon where states are flat shards: DeepSpeed's and FSDP's, by hand for four layers of the GPT
// form. Each has, in units of h x h elements, a packed matrix of 3 x 1, one of 1 x 1, and two of
// the MLP, 4 x 1 and 1 x 4: 48 units in all, with m = h everywhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/each.h"
#include "expert_scenarios.h"
#include "program/muon.h"
#include "program/program.h"
#include "program/walk.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

constexpr std::int64_t kUnits = 48;
constexpr auto kOptimizerStates = static_cast<std::size_t>(MemoryCategory::kOptimizer);
constexpr auto kGradientStates = static_cast<std::size_t>(MemoryCategory::kGradients);
constexpr auto kWorkspaceBytes = static_cast<std::size_t>(MemoryCategory::kWorkspace);

GptCase muon_of(const std::string& framework, int zero, int dp) {
  GptCase c;
  c.framework = framework;
  c.dropout = 0;
  c.tied = false;
  c.attention = "flash";
  c.zero = zero;
  c.dp = dp;
  c.global_batch = 24;
  c.extra_training = R"(, "optimizer": "muon")";
  return c;
}

struct MuonStep {
  Scenario scenario;
  Program program;
  MuonShare share;
  double products = 0;  // operations of the update, in h^3
  std::map<std::string, std::vector<Collective>> messages;

  std::int64_t unit() const { return scenario.model.hidden * scenario.model.hidden; }
  double units(const std::string& name) const {
    std::int64_t elements = 0;
    if (!messages.contains(name)) return 0;
    for (const Collective& one : messages.at(name)) elements += one.bytes / size_of(one.type);
    return static_cast<double>(elements) / static_cast<double>(unit());
  }
  const MemoryParts& persistent() const { return program.roles[0].persistent; }
};

MuonStep muon_step(const GptCase& c) {
  MuonStep out;
  out.scenario = gpt(c);
  out.program = lower(out.scenario);
  const auto shares = muon_shares(out.scenario, out.program, out.program.roles[0]);
  EXPECT_EQ(shares.size(), 1U);
  out.share = shares.at(0);
  for (const Block& block : out.program.blocks) {
    if (block.kind != BlockKind::kUpdate) continue;
    for_each_operation(block, [&](const Operation& operation) {
      const auto h = static_cast<double>(out.scenario.model.hidden);
      if (const auto* gemm = std::get_if<Gemm>(&operation.work)) {
        out.products += flops_of(*gemm) / (h * h * h);
      }
      if (const auto* sent = std::get_if<Collective>(&operation.work)) {
        out.messages[operation.name].push_back(*sent);
      }
    });
  }
  EXPECT_EQ(out.share.states.elements, kUnits * out.unit());
  return out;
}

// Bytes of gradients by the kind of collective.
std::map<CollectiveKind, ByteCount> reduced_by(const Program& program) {
  std::map<CollectiveKind, ByteCount> out;
  for (const Instruction& what : program.roles[0].instructions) {
    const auto* call = what.as<CollectiveCall>();
    if (call == nullptr || call->purpose != Purpose::kGradients) continue;
    out[call->message.kind] += call->message.bytes;
  }
  return out;
}

// On the product of a matrix with itself: 8 m^2 n + 28 m^3, and 30 m^3 of a square one. So 4 x 1
// takes 60 h^3, 3 x 1 52 and 1 x 1 30.
TEST(MuonOfDeepSpeed, IteratesOnTheProductOfAMatrixWithItself) {
  for (const int zero : each_of(std::vector{0, 1, 2})) {
    const MuonStep step = muon_step(muon_of("deepspeed", zero, 1));
    EXPECT_NEAR(step.products, 4 * (60 + 60 + 52 + 30), 1e-9);
    EXPECT_TRUE(step.messages.empty());
  }
}

// There are four equal partitions of 12 units, with the largest matrices first: four of 4 x 1, four
// of 3 x 1, four of 1 x 4, four squares. The third reaches into matrices of 3 + 3 + 4 + 4 units,
// and the last has most to do: two of 1 x 4 and the squares.
TEST(MuonOfDeepSpeed, WorksOnEachMatrixThatAPartitionTouches) {
  for (const int zero : each_of(std::vector{1, 2})) {
    const MuonStep step = muon_step(muon_of("deepspeed", zero, 4));
    EXPECT_EQ(step.share.states.updated, 12 * step.unit());
    EXPECT_EQ(step.share.states.moments, 14 * step.unit());
    EXPECT_NEAR(step.products, 2 * 60 + 4 * 30, 1e-9);
    EXPECT_TRUE(step.messages.empty());
    // A master copy of the partition in fp32, and momentum of whole matrices in the type of the
    // gradients; 12 bytes of the rest.
    const std::int64_t rest = step.program.roles[0].parameters - step.share.states.elements;
    EXPECT_NEAR(static_cast<double>(step.persistent()[kOptimizerStates]),
                static_cast<double>((4 * 12 + 2 * 14) * step.unit() + 12 * rest / 4), 64);
    const std::int64_t gradients =
        zero == 1 ? 2 * step.program.roles[0].parameters : 2 * (14 * step.unit() + rest / 4);
    EXPECT_NEAR(static_cast<double>(step.persistent()[kGradientStates]),
                static_cast<double>(gradients), 64);
    // Each owner needs the gradient whole.
    EXPECT_EQ(reduced_by(step.program).count(CollectiveKind::kReduceScatter), 0U);
  }
}

TEST(MuonOfDeepSpeed, HoldsNoMoreWithMoreRanks) {
  std::int64_t before = kUnits * 512 * 512;
  for (const int dp : each_of(std::vector{2, 4, 8})) {
    const MuonStates& states = muon_step(muon_of("deepspeed", 1, dp)).share.states;
    EXPECT_LE(states.moments, before);
    EXPECT_GE(states.moments, states.updated);
    before = states.moments;
  }
}

// All gradients and momentum are gathered once, and results and momentum after each round; a round
// takes as long as its most costly matrix.
TEST(MuonOfDeepSpeed, GathersAndTakesTurnsWithZero3) {
  const MuonStep four = muon_step(muon_of("deepspeed", 3, 4));
  EXPECT_NEAR(four.products, 60 + 52 + 60 + 30, 1e-9);
  for (const char* name :
       {"gather_gradients", "gather_momentum", "gather_updates", "gather_new_momentum"}) {
    EXPECT_DOUBLE_EQ(four.units(name), kUnits) << name;
    for (const Collective& one : four.messages.at(name)) {
      EXPECT_EQ(one.kind, CollectiveKind::kAllGather);
      EXPECT_EQ(one.type, DataType::kBf16);
      EXPECT_EQ(one.group, AxisGroup::kData);
    }
  }
  EXPECT_EQ(four.messages.at("gather_updates").size(), 4U);
  EXPECT_EQ(four.messages.at("gather_momentum").size(), 1U);
  EXPECT_EQ(reduced_by(four.program).count(CollectiveKind::kReduceScatter), 0U);
  const std::int64_t own = four.share.states.updated;
  EXPECT_EQ(own, kUnits * four.unit() / 4);
  EXPECT_EQ(four.share.states.moments, own);
  // 16 matrices on 3 ranks: five rounds, and one that two copies of the last matrix fill.
  const MuonStep three = muon_step(muon_of("deepspeed", 3, 3));
  EXPECT_DOUBLE_EQ(three.units("gather_updates"), kUnits + 2);
  EXPECT_EQ(three.messages.at("gather_updates").size(), 6U);
}

// The bucket of gradients bounds how much is gathered at once.
TEST(MuonOfDeepSpeed, GathersBucketsWithZero3) {
  GptCase c = muon_of("deepspeed", 3, 4);
  c.extra_training += R"(, "bucket_elements": 2097152)";  // 8 units
  const MuonStep step = muon_step(c);
  EXPECT_EQ(step.messages.at("gather_gradients").size(), 7U);  // 8 8 6 6 8 8 4
  EXPECT_DOUBLE_EQ(step.units("gather_gradients"), kUnits);
  for (const Collective& one : step.messages.at("gather_gradients")) {
    EXPECT_LE(one.bytes, 2 * 8 * step.unit());
  }
}

TEST(MuonOfDeepSpeed, HasNoMessagesOnOneRank) {
  const MuonStep step = muon_step(muon_of("deepspeed", 3, 1));
  EXPECT_TRUE(step.messages.empty());
  EXPECT_NEAR(step.products, 4 * (60 + 60 + 52 + 30), 1e-9);
}

// 20 m^2 n + 10 m^3 in each iteration's steps: 90 h^3 of 4 x 1, 70 of 3 x 1 and 30 of 1 x 1. Two
// ranks share two layers evenly: one has 3 and 4 units of the first, and the other of the second.
TEST(MuonOfFsdp, OwnersShareTheWork) {
  const MuonStep one = muon_step(muon_of("fsdp", 3, 1));
  EXPECT_NEAR(one.products, 4 * 280, 1e-9);
  EXPECT_TRUE(one.messages.empty());
  const MuonStep two = muon_step(muon_of("fsdp", 3, 2));
  EXPECT_NEAR(two.products, 4 * 280 / 2, 1e-9);
  // Eight ranks: a layer's four matrices have four owners, and those of the next one four others.
  const MuonStep eight = muon_step(muon_of("fsdp", 3, 8));
  EXPECT_NEAR(eight.products, 2 * 90, 1e-9);
}

// The busiest owner's matrices of a layer come and go in the type of the weights.
TEST(MuonOfFsdp, SendsShardsToOwnersAndBack) {
  for (const int zero : each_of(std::vector{2, 3})) {
    const MuonStep two = muon_step(muon_of("fsdp", zero, 2)),
                   eight = muon_step(muon_of("fsdp", zero, 8));
    for (const char* name : {"send_to_owners", "send_back"}) {
      EXPECT_DOUBLE_EQ(two.units(name), 4 * 7) << name;
      EXPECT_DOUBLE_EQ(eight.units(name), 4 * 4) << name;
      ASSERT_EQ(eight.messages.at(name).size(), 4U);
      for (const Collective& sent : eight.messages.at(name)) {
        EXPECT_EQ(sent.kind, CollectiveKind::kAllToAll);
        EXPECT_EQ(sent.type, DataType::kFp32);
        EXPECT_EQ(sent.group, AxisGroup::kData);
      }
    }
  }
}

// 4 bytes of momentum a parameter instead of 8 of Adam's moments, all in shards; and two slots in
// fp32 of a layer's shards, of what arrives at an owner, and of one matrix, whole and its shard.
// A message to owners follows the momentum that it sends, which is computed last before it. Layer
// by layer the work waits for what has arrived, and the weights for what comes back.
TEST(MuonOfFsdp, WorksOnALayerWhenItsShardsHaveArrived) {
  const MuonStep step = muon_step(muon_of("fsdp", 3, 4));
  constexpr auto kComputes = static_cast<std::size_t>(BlockStream::kCompute);
  constexpr auto kMessages = static_cast<std::size_t>(BlockStream::kCommunication);
  const auto update = std::ranges::find(step.program.blocks, BlockKind::kUpdate, &Block::kind);
  ASSERT_NE(update, step.program.blocks.end());
  const std::vector<Operation>& all = update->pass(Pass::kForward).operations;
  std::vector<std::int32_t> sent, returned;
  std::int32_t applied = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string name = all[i].name;
    const auto index = static_cast<std::int32_t>(i);
    if (name == "send_to_owners") {
      EXPECT_EQ(std::string(all[i - 1].name), "momentum");
      EXPECT_EQ(all[i].after[kComputes], index - 1);
      sent.push_back(index);
    } else if (name == "normalise") {
      ASSERT_LT(returned.size(), sent.size());
      EXPECT_GE(all[i].after[kMessages], sent[returned.size()]);
    } else if (name == "send_back") {
      returned.push_back(index);
    } else if (name == "apply_update") {
      ASSERT_LT(static_cast<std::size_t>(applied), returned.size());
      EXPECT_GE(all[i].after[kMessages], returned[static_cast<std::size_t>(applied++)]);
    }
  }
  EXPECT_EQ(sent.size(), 4U);  // layers
  EXPECT_EQ(returned.size(), sent.size());
  EXPECT_EQ(applied, 4);
}

TEST(MuonOfFsdp, KeepsShardsAndTwoSlots) {
  const GptCase c = muon_of("fsdp", 3, 8);
  const MuonStep step = muon_step(c);
  GptCase with_adam = c;
  with_adam.extra_training = "";
  const Program adam = lower(gpt(with_adam));
  const MemoryParts& before = adam.roles[0].persistent;
  EXPECT_EQ(step.share.states.updated, kUnits * step.unit() / 8);
  EXPECT_EQ(before[kOptimizerStates] - step.persistent()[kOptimizerStates],
            4 * kUnits * step.unit() / 8);
  EXPECT_EQ(step.persistent()[kGradientStates], before[kGradientStates]);
  EXPECT_EQ(step.persistent()[kWorkspaceBytes] - before[kWorkspaceBytes],
            2 * 4 * (12 * step.unit() / 8 + 4 * step.unit() + 4 * step.unit() + step.unit() / 2));
}

TEST(MuonOfFsdp, StaysInsideAGroupThatSharesStates) {
  GptCase c = muon_of("fsdp", 3, 8);
  c.extra_layout = R"(, "shard_group": 2)";
  const MuonStep step = muon_step(c);
  EXPECT_NEAR(step.products, 4 * 280 / 2, 1e-9);
  for (const Collective& sent : step.messages.at("send_to_owners")) {
    EXPECT_EQ(sent.group, AxisGroup::kDataShard);
  }
}

// A matrix of 4 x 1 has two iterates in 16 bits, and square matrices of one unit: four on the
// product with itself, two else. Beside it lie the updates of 14 units in bf16; or gradients and
// momentum of all, of which what has arrived lies there twice for a while.
TEST(MuonOfShards, TakesMemoryWhileItUpdates) {
  const auto bytes_of = [](const GptCase& c) {
    const MuonStep step = muon_step(c);
    return muon_workspace(step.scenario, {step.share}) / step.unit();
  };
  EXPECT_EQ(bytes_of(muon_of("deepspeed", 0, 4)), 2 * 2 * 4 + 4 * 2);
  EXPECT_EQ(bytes_of(muon_of("deepspeed", 1, 4)), 2 * 2 * 4 + 4 * 2 + 2 * 14);
  EXPECT_EQ(bytes_of(muon_of("deepspeed", 3, 4)), 3 * 2 * kUnits);
  EXPECT_EQ(bytes_of(muon_of("deepspeed", 3, 1)), 2 * 2 * 4 + 4 * 2);
  EXPECT_EQ(bytes_of(muon_of("fsdp", 3, 4)), 2 * 2 * 4 + 2 * 2);
}

// Two layers of the Llama form with experts, which FSDP shards over `ranks` data ranks of their
// own.
std::vector<MuonShare> expert_shares(int experts, int ranks) {
  testing::ExpertCase c;
  c.experts = experts;
  c.ep = 2;
  c.dp = 2 * ranks;
  c.zero = 3;
  c.more_training = R"(,"optimizer":"muon")";
  std::string text = testing::text_of(c);
  text.replace(text.find("\"megatron\""), 10, "\"fsdp\"");
  const Scenario scenario = testing::scenario_from(text);
  const Program program = lower(scenario);
  return muon_shares(scenario, program, program.roles[0]);
}

// Queries, keys, values, the output and the router are five matrices of five owners, of which one
// rank of two layers has at most two; and experts have gate, up and down apart.
TEST(MuonOfFsdp, HasThePartsOfPackedMatricesApart) {
  const auto shares = expert_shares(16, 4);
  ASSERT_EQ(shares.size(), 2U);
  for (const MuonShare& share : shares) {
    ASSERT_EQ(share.buckets.size(), 2U);
    const bool dense = share.states.group == AxisGroup::kData;
    for (const MuonBucket& bucket : share.buckets) {
      EXPECT_EQ(bucket.elements, dense ? 4 * 1024 * 1024 + 16 * 1024 : 8 * 3 * 512 * 1024);
      // Two of eight experts on each of four ranks stay where they are.
      EXPECT_EQ(bucket.arrives, dense ? 1024 * 1024 : 0);
      EXPECT_TRUE(dense || bucket.work.size() == 3U * 2);
    }
  }
}

// More ranks than experts: each has one matrix of each kind at most, which is sent to it.
TEST(MuonOfFsdp, SendsExpertsThatAreFewerThanRanks) {
  const auto shares = expert_shares(4, 4);
  ASSERT_EQ(shares.size(), 2U);
  const MuonShare& experts = shares[shares[0].states.group == AxisGroup::kExpertData ? 0 : 1];
  for (const MuonBucket& bucket : each_of(experts.buckets)) {
    EXPECT_EQ(bucket.work.size(), 3U);
    EXPECT_EQ(bucket.arrives, 3 * 512 * 1024);
  }
}

}  // namespace
}  // namespace stepcast
