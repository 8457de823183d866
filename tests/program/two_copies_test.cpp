// SPDX-License-Identifier: Apache-2.0
// A model that stands on the stages twice (schedule dualpipe): what each rank holds and whom it
// shares gradients with.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/each.h"
#include "layout/pipeline.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

testing::GptCase on_four_stages(const char* schedule) {
  testing::GptCase c;
  c.layers = 8, c.pp = 4, c.dp = 2, c.zero = 1;
  c.global_batch = 16;
  c.schedule = schedule;
  c.virtual_stages = std::string(schedule) == "dualpipe" ? 2 : 1;
  c.tied = false;
  return c;
}

ByteCount persistent(const Role& role, MemoryCategory category) {
  return role.persistent[static_cast<std::size_t>(category)];
}

// Stage s holds what 1F1B has on stages s and 3-s. Two copies on 2 data ranks each share the
// states, so that a rank updates half of what it does there.
TEST(TwoCopies, AStageHoldsTwoStagesAndUpdatesHalfOfThem) {
  const Program once = lower(testing::gpt(on_four_stages("1f1b")));
  const Program twice = lower(testing::gpt(on_four_stages("dualpipe")));
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const auto both = [&](MemoryCategory category) {
      return persistent(once.roles[stage], category) + persistent(once.roles[3 - stage], category);
    };
    const Role& role = twice.roles[stage];
    for (const auto category : {MemoryCategory::kParameters, MemoryCategory::kGradients}) {
      EXPECT_EQ(persistent(role, category), both(category)) << stage;
    }
    EXPECT_NEAR(static_cast<double>(persistent(role, MemoryCategory::kOptimizer)),
                static_cast<double>(both(MemoryCategory::kOptimizer)) / 2, 64)
        << stage;
  }
}

// The ranks of both copies join in one collective, so they must start the same ones in one order.
// Megatron cuts buckets where the model begins: on both stages that hold its first chunk.
TEST(TwoCopies, StagesThatMirrorEachOtherStartTheSameCollectives) {
  testing::GptCase c = on_four_stages("dualpipe");
  c.extra_training = R"(, "bucket_elements": 1000)";
  c.extra_layout = R"(, "overlap": {"grad_reduce": true, "param_gather": true})";
  const Scenario scenario = testing::gpt(c);
  EXPECT_EQ(size_of(AxisGroup::kData, scenario.layout), 4);
  const Program program = lower(scenario);
  const auto calls_of = [&](const Role& role) {
    std::vector<CollectiveCall> out;
    for (const Instruction& what : role.instructions) {
      const auto* call = what.as<CollectiveCall>();
      if (call != nullptr && call->group == AxisGroup::kData) out.push_back(*call);
    }
    return out;
  };
  for (std::size_t stage = 0; stage < 2; ++stage) {
    const auto own = calls_of(program.roles[stage]), other = calls_of(program.roles[3 - stage]);
    ASSERT_EQ(own.size(), other.size());
    ASSERT_GE(own.size(), 4U);
    for (std::size_t i = 0; i < own.size(); ++i) {
      EXPECT_EQ(own[i].elements.begin, other[i].elements.begin) << stage << " " << i;
      EXPECT_EQ(own[i].elements.end, other[i].elements.end) << stage << " " << i;
      EXPECT_EQ(own[i].message, other[i].message) << stage << " " << i;
    }
  }
  EXPECT_GT(calls_of(program.roles[3]).size(), calls_of(program.roles[1]).size());
}

// Embedding and head are with the first and the last two layers.
TEST(TwoCopies, EveryMicroBatchMeetsEveryLayerOnce) {
  const Scenario scenario = testing::gpt(on_four_stages("dualpipe"));
  const Program program = lower(scenario);
  std::vector<std::vector<int>> met(4, std::vector<int>(8, 0));  // by chunk and micro-batch
  for (const Role& role : program.roles) {
    for (const Instruction& what : each_of(role.instructions)) {
      const auto* run = what.as<RunPass>();
      if (run == nullptr || run->slot.pass != Pass::kForward) continue;
      const Chunk& chunk = role.chunks[static_cast<std::size_t>(run->slot.chunk)];
      EXPECT_EQ(static_cast<std::int64_t>(chunk.blocks.size()), chunk.model_chunk % 3 == 0 ? 3 : 2);
      ++met[static_cast<std::size_t>(chunk.model_chunk)]
           [static_cast<std::size_t>(run->slot.micro_batch)];
    }
  }
  for (const std::vector<int>& of_chunk : met) {
    EXPECT_EQ(std::ranges::count(of_chunk, 1), 8);
  }
}

}  // namespace
}  // namespace stepcast
