// SPDX-License-Identifier: Apache-2.0
#include "predict/memory_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "program/decoder_layer.h"
#include "program/instruction.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

ByteCount peak(const Program& program, std::size_t stage) {
  return total(replay_memory(program, program.roles[stage]).parts);
}

GptCase pipeline(const std::string& schedule) {
  GptCase c;
  c.pp = 4;
  c.layers = 8;
  c.global_batch = 8;
  c.schedule = schedule;
  return c;
}

// Under 1F1B stage i holds p - i micro-batches: from one inner stage to the next the peak falls by
// one micro-batch of the stage's layers (Narayanan et al. 2021, section 2.2.1).
TEST(MemoryReplay, EachStageOf1F1BHoldsOneMicroBatchLess) {
  const GptCase c = pipeline("1f1b");
  const Scenario scenario = gpt(c);
  const Program program = lower(scenario);
  const ByteCount layer =
      total(lower_decoder_layer(scenario, RecomputeMode::kNone).pass(Pass::kForward).memory.after);
  // Saved tensors of the stage's two layers; a layer's output counts as the next one's input.
  EXPECT_EQ(peak(program, 1) - peak(program, 2), 2 * layer);
}

TEST(MemoryReplay, GpipeHoldsEveryMicroBatchOnEveryStage) {
  GptCase c = pipeline("gpipe");
  const Program program = lower(gpt(c));
  EXPECT_EQ(peak(program, 1), peak(program, 2));
  c.global_batch = 9;
  const Program more = lower(gpt(c));
  const ByteCount layer =
      total(lower_decoder_layer(gpt(c), RecomputeMode::kNone).pass(Pass::kForward).memory.after);
  EXPECT_EQ(peak(more, 1) - peak(program, 1), 2 * layer);
}

// DeepSpeed's ZeRO-2 holds a bucket of gradients, or two where it reduces beside the backward.
TEST(MemoryReplay, Zero2HoldsBucketsInPlaceOfGradients) {
  GptCase c;
  c.framework = "deepspeed";
  c.attention = "flash";
  c.hidden = 4096;
  c.heads = 32;
  c.layers = 12;
  c.dp = 8;
  c.global_batch = 16;
  c.recompute = "full";
  for (const char* overlap : {"false", "true"}) {
    c.extra_layout = std::string(R"(, "overlap": {"grad_reduce": )") + overlap + "}";
    c.zero = 1;
    const Program whole = lower(gpt(c));
    c.zero = 2;
    const Program buckets = lower(gpt(c));
    const std::int64_t parameters = whole.roles.front().parameters;
    constexpr std::int64_t kBucket = 500'000'000, kLayer = 12 * 4096 * 4096 + 13 * 4096;
    const std::int64_t held = (overlap[0] == 't' ? 2 : 1) * (kBucket + kLayer);
    ASSERT_GT(parameters, 2 * (kBucket + kLayer));
    EXPECT_LE(peak(buckets, 0), peak(whole, 0) - 2 * (parameters - parameters / 8 - held));
  }
}

// The command with which latent attention freed a norm's output that nobody had written: stage 0
// had -138,403,840 bytes of activations.
TEST(MemoryReplay, OfLatentAttentionInFp8StaysAboveTheStates) {
  const Scenario scenario = testing::scenario_from(
      R"({"stepcast": 1, "model": "deepseek-v2-lite", "cluster": "dgx-h100x1", "training":
          {"global_batch": 16, "sequence_length": 512, "precision": "fp8"},
          "layout": {"pp": 2, "recompute": "full"}})");
  const Program program = lower(scenario);
  int moments = 0;
  for (const Role& role : program.roles) {
    MemoryParts last{};
    replay_memory(program, role, [&](const MemoryMoment& moment) {
      for (std::size_t i = 0; i < moment.parts.size(); ++i) {
        EXPECT_GE(moment.parts[i], role.persistent[i]);
      }
      last = moment.parts;
      ++moments;
    });
    EXPECT_EQ(last, role.persistent);
  }
  EXPECT_GT(moments, 0);
}

// A faulty program is found out by the replay too, which counts bytes and knows no buffers.
TEST(MemoryReplay, AssertsThatNothingIsFreedThatNobodyHoldsAndThatNothingIsLeft) {
  const Program sound = lower(gpt(pipeline("1f1b")));
  const auto replay = [](const Program& program) { replay_memory(program, program.roles[1]); };
  EXPECT_NO_THROW(replay(sound));
  constexpr auto kActivations = static_cast<std::size_t>(MemoryCategory::kActivations);
  const auto received = [](Program& program) -> Instruction& {
    return *std::ranges::find_if(program.roles[1].instructions,
                                 [](const Instruction& what) { return what.is<Receive>(); });
  };
  Program too_little = sound, too_much = sound;
  received(too_little).birth[kActivations] = 0;
  EXPECT_THROW(replay(too_little), std::logic_error);
  received(too_much).birth[kActivations] += 1;
  EXPECT_THROW(replay(too_much), std::logic_error);
}

}  // namespace
}  // namespace stepcast
