// SPDX-License-Identifier: Apache-2.0
// Which activations leave the device, when they come back, and how many lie on their way.
#include "program/offload_activations.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "cluster/host_link.h"
#include "core/each.h"
#include "program/instruction.h"
#include "program/program.h"
#include "program/waits.h"
#include "scenario_from.h"
#include "schedule/pass.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

GptCase offloading(double fraction, int layers) {
  GptCase c;
  c.layers = layers;
  c.global_batch = 2;
  c.extra_layout = R"(, "offload": {"activations": )" + std::to_string(fraction) + "}";
  return c;
}

std::int64_t copies(const Program& program, CopyDirection direction) {
  std::int64_t out = 0;
  for (const Instruction& what : program.roles.front().instructions) {
    const auto* copy = what.as<ActivationCopy>();
    if (copy != nullptr && copy->direction == direction) ++out;
  }
  return out;
}

TEST(OffloadActivations, AreThoseOfTheFractionAndNeverOfTheLastLayer) {
  const Scenario some = gpt(offloading(0.25, 8)), all = gpt(offloading(1, 8));
  EXPECT_EQ(offloaded_layers(some, 8), 2);
  EXPECT_EQ(offloaded_layers(all, 8), 7);
  EXPECT_EQ(offloaded_layers(all, 1), 0);
  for (const CopyDirection way : {CopyDirection::kToHost, CopyDirection::kFromHost}) {
    EXPECT_EQ(copies(lower(some), way), 2 * 2);  // of two micro-batches
    EXPECT_EQ(copies(lower(all), way), 2 * 7);
  }
}

// Whatever leaves comes back, and host memory is empty again.
TEST(OffloadActivations, BalanceOutOverAStep) {
  const Program program = lower(gpt(offloading(0.6, 6)));
  ByteCount on_host = 0, moved = 0;
  for (const Instruction& what : program.roles.front().instructions) {
    on_host += what.host_birth() - what.host_death();
    EXPECT_GE(on_host, 0);
    if (const auto* copy = what.as<ActivationCopy>()) {
      const MemoryParts& parts =
          copy->direction == CopyDirection::kToHost ? what.death : what.birth;
      EXPECT_EQ(total(parts), copy->bytes);
      moved += copy->bytes;
    }
  }
  EXPECT_EQ(on_host, 0);
  EXPECT_GT(moved, 0);
}

// Nobody but the layer itself waits for its copy: parameters are gathered meanwhile.
TEST(OffloadActivations, HoldNoGatherUp) {
  GptCase c = offloading(0.5, 6);
  c.framework = "fsdp";
  c.attention = "flash";
  c.dropout = 0;
  c.dp = 2;
  c.zero = 3;
  const Program program = lower(gpt(c));
  const std::vector<Instruction>& list = program.roles.front().instructions;
  EXPECT_GT(copies(program, CopyDirection::kToHost), 0);
  AtLeast gathers(2);
  for (const Instruction& what : list) {
    if (!what.is<CollectiveCall>()) continue;
    ++gathers;
    for (const InstructionIndex wait : what.waits) {
      EXPECT_FALSE(list[static_cast<std::size_t>(wait)].is<ActivationCopy>()) << what.name;
    }
  }
}

// A layer comes back while the backward of the one behind it runs.
TEST(OffloadActivations, ComeBackOneLayerAhead) {
  const Program program = lower(gpt(offloading(1, 5)));
  const std::vector<Instruction>& list = program.roles.front().instructions;
  int returned = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto* copy = list[i].as<ActivationCopy>();
    if (copy == nullptr || copy->direction == CopyDirection::kToHost) continue;
    ++returned;
    const auto* behind = list[i + 1].as<RunPass>();
    ASSERT_NE(behind, nullptr);
    EXPECT_EQ(behind->slot.pass, Pass::kBackward);
    EXPECT_EQ(behind->block_begin, copy->block_begin + 1);
    EXPECT_EQ(behind->block_end, behind->block_begin + 1);
  }
  EXPECT_EQ(returned, 2 * 4);
}

// Layers that are not offloaded run in one part with what stands beside them.
TEST(OffloadActivations, LeaveOtherRunsWhole) {
  const Program program = lower(gpt(offloading(0.25, 8)));
  int forwards = 0;
  for (const Instruction& what : program.roles.front().instructions) {
    const auto* run = what.as<RunPass>();
    if (run != nullptr && run->slot.pass == Pass::kForward) ++forwards;
  }
  EXPECT_EQ(forwards, 2 * (1 + 2 + 1));  // the embedding, two layers, the rest
}

// On a pipeline each chunk keeps its last layer. As much comes back as has left, chunk by chunk,
// whether the backward is whole or split.
TEST(OffloadActivations, OfAPipelineAreThoseOfEachChunk) {
  for (const char* schedule : each_of(std::vector{"1f1b", "interleaved", "zb-h1", "zb-v"})) {
    GptCase c = offloading(1, 12);
    c.pp = 2;
    c.global_batch = 4;
    c.schedule = schedule;
    const bool two = std::string(schedule) == "interleaved" || std::string(schedule) == "zb-v";
    c.virtual_stages = two ? 2 : 1;
    const Program program = lower(gpt(c));
    for (const Role& role : each_of(program.roles)) {
      std::map<std::int32_t, ByteCount> left, back;
      std::int64_t copies = 0;
      for (const Instruction& what : role.instructions) {
        const auto* copy = what.as<ActivationCopy>();
        if (copy == nullptr) continue;
        (copy->direction == CopyDirection::kToHost ? left : back)[copy->slot.chunk] += copy->bytes;
        ++copies;
      }
      EXPECT_EQ(left, back) << schedule;
      EXPECT_EQ(left.size(), role.chunks.size());
      // Four micro-batches, six layers on a stage, of which each chunk keeps one; out and in.
      EXPECT_EQ(copies, 4 * (6 - c.virtual_stages) * 2) << schedule;
    }
  }
}

}  // namespace
}  // namespace stepcast
