// SPDX-License-Identifier: Apache-2.0
#include "memory/device_footprint.h"

#include <gtest/gtest.h>

#include "expert_scenarios.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

constexpr ByteCount kGiB = ByteCount{1} << 30;

TEST(Reserved, FlatCopiesFindNoRoomAmongKeptPieces) {
  GptCase c;
  c.framework = "deepspeed";
  const Scenario scenario = gpt(c);
  // Activations are gone when the copies come, so 20 GiB are the most that is allocated.
  const ByteCount both = reserved_bytes(scenario, 20 * kGiB, 20 * kGiB, 4 * kGiB, 80 * kGiB);
  EXPECT_EQ(both, reserved_bytes(scenario, 20 * kGiB) + 4 * kGiB);
  c.framework = "megatron";
  EXPECT_EQ(reserved_bytes(gpt(c), 20 * kGiB, 20 * kGiB, 4 * kGiB, 80 * kGiB),
            reserved_bytes(gpt(c), 20 * kGiB));
}

TEST(Reserved, WhatIsKeptNeverFillsMoreThanTheDevice) {
  GptCase c;
  c.framework = "deepspeed";
  const Scenario scenario = gpt(c);
  const ByteCount memory = scenario.cluster.spec.accelerator.memory;
  const ByteCount reserved = reserved_bytes(scenario, 70 * kGiB, 70 * kGiB, 30 * kGiB, memory);
  EXPECT_EQ(reserved + framework_bytes(scenario), memory);
  // Tensors that are allocated at once do not fit for all that.
  EXPECT_GT(reserved_bytes(scenario, 90 * kGiB, 70 * kGiB, 30 * kGiB, memory), memory);
}

TEST(Framework, NormOfAllGradientsHasACommunicatorOfItsOwn) {
  GptCase c;
  c.tp = c.pp = c.dp = 2;
  c.zero = 1;
  const ByteCount with = framework_bytes(gpt(c));
  c.extra_training = R"(, "grad_clip": "none")";
  const ByteCount without = framework_bytes(gpt(c));
  EXPECT_GT(with, without);
  // If ranks differ along one axis alone, that axis has a communicator already.
  c.tp = c.pp = 1;
  const ByteCount plain = framework_bytes(gpt(c));
  c.extra_training = "";
  EXPECT_EQ(framework_bytes(gpt(c)), plain);
}

// Two buffers, each with room for what 8 ranks of 1024 tokens send: 1024 elements of 16 bits, and
// 2 x 8 weights of the experts that the receiver's node has.
TEST(Framework, HybridEpHoldsWhatAllRanksMaySend) {
  testing::ExpertCase c;
  c.ep = 8;
  c.dispatcher = "alltoall";  // by a communicator of 544 MiB instead
  const ByteCount without = framework_bytes(testing::with_experts(c)) - 544 * (ByteCount{1} << 20);
  c.dispatcher = "hybridep";
  const ByteCount with = framework_bytes(testing::with_experts(c));
  EXPECT_EQ(with - without, 2 * (8 * 1024) * (2 * 1024 + 4 * (2 * 8)));
}

// Ten channels, each with room for 256 tokens of every one of 8 GPUs. With two nodes it is 288, and
// 128 of either node to send and to receive. A token of 1024 takes 2048 bytes, and 2056 beside.
TEST(Framework, DeepEpHoldsAWindowOfTokensForEveryPeer) {
  constexpr ByteCount kToken = 2048 + 8 + 128 * (8 + 4 + 4);
  std::string more;
  const auto buffers = [&](int ranks, ByteCount communicator) {
    testing::ExpertCase c;
    c.ep = c.dp = ranks;
    c.dispatcher = "alltoall";
    const ByteCount without =
        framework_bytes(testing::with_experts(c)) - communicator * (ByteCount{1} << 20);
    c.dispatcher = "deepep";
    c.more_moe = more;
    return framework_bytes(testing::with_experts(c)) - without;
  };
  EXPECT_EQ(buffers(8, 544), 10 * kToken * 8 * 256);
  EXPECT_EQ(buffers(16, 320), 10 * kToken * (8 * 288 + 2 * 2 * 128));
  more = R"(,"dispatcher_sms":12)";  // of two SMs each
  EXPECT_EQ(buffers(8, 544), 6 * kToken * 8 * 256);
}

// Channels to other nodes take less memory than those inside one: 320 MiB and 544 MiB a
// communicator.
TEST(Framework, TheOrderOfRanksDecidesWhichCommunicatorsLeaveTheNode) {
  constexpr ByteCount kFarther = (544 - 320) * (ByteCount{1} << 20);
  GptCase c;
  c.tp = 2;
  c.dp = 8;
  c.extra_training = R"(, "grad_clip": "none")";
  const ByteCount near = framework_bytes(gpt(c));
  c.extra_layout = R"(, "order": "dp-tp-cp-ep-pp")";  // dp fills the node, tp leaves it
  EXPECT_EQ(framework_bytes(gpt(c)), near);
  c.dp = 4;  // both stay inside it, or with tp last of all leave it
  EXPECT_EQ(framework_bytes(gpt(c)), near + kFarther);
}

// Copies meet across nodes, and the ranks that share a copy inside one.
TEST(Framework, CopiesOfShardedStatesMeetInACommunicatorOfTheirOwn) {
  GptCase c;
  c.dp = c.global_batch = 16;
  c.zero = 3;
  c.framework = "fsdp";
  const ByteCount whole = framework_bytes(gpt(c));
  c.extra_layout = R"(, "shard_group": 8)";
  EXPECT_EQ(framework_bytes(gpt(c)), whole + 544 * (ByteCount{1} << 20));
}

// Ranks that exchange tokens, and those that hold the same experts, have groups of their own.
TEST(Framework, ExpertsHaveCommunicators) {
  testing::ExpertCase c;
  c.dp = 16;
  const ByteCount without = framework_bytes(with_experts(c));
  c.ep = 8;
  const ByteCount with = framework_bytes(with_experts(c));
  c.dispatcher = "deepep";  // moves tokens itself
  const ByteCount own_buffers = framework_bytes(with_experts(c));
  EXPECT_GT(own_buffers, without);
  EXPECT_GT(with, own_buffers);
  c.ep = 16;  // nobody holds the same experts
  c.dispatcher = "alltoall";
  constexpr ByteCount kAcrossNodes = 320 * (ByteCount{1} << 20);
  EXPECT_EQ(framework_bytes(with_experts(c)), without + kAcrossNodes);
}

}  // namespace
}  // namespace stepcast
