// SPDX-License-Identifier: Apache-2.0
#include "predict/memory_replay.h"

#include <gtest/gtest.h>

#include <random>

#include "program/decoder_layer.h"
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

TEST(MemoryReplay, NothingIsAliveAfterAStepButTheStates) {
  std::mt19937 random(5);
  const auto coin = [&] { return std::uniform_int_distribution<>(0, 1)(random) == 1; };
  for (int i = 0; i < 40; ++i) {
    GptCase c;
    if (coin()) {
      c.framework = coin() ? "fsdp" : "deepspeed";
      c.zero = 3;
      c.dp = 4;
      if (coin()) c.zero = 2;
      if (c.framework == "deepspeed" && coin()) c.zero = 1;
    } else {
      c.tp = coin() ? 2 : 1;
      c.pp = coin() ? 4 : 1;
      c.dp = coin() ? 2 : 1;
      c.sequence_parallel = c.tp > 1 && coin();
      if (c.pp > 1 && coin()) {
        c.schedule = "interleaved";
        c.virtual_stages = 2;
      }
    }
    c.layers = c.pp * c.virtual_stages;
    c.global_batch = c.dp * c.pp * 2;
    c.recompute = coin() ? "none" : coin() ? "full" : "selective";
    c.attention = coin() ? "flash" : "unfused";
    c.dropout = coin() ? 0.1 : 0;
    if (coin()) c.extra_training = coin() ? R"(, "mode": "lora")" : R"(, "mode": "qlora")";
    const Program program = lower(gpt(c));
    for (const Role& role : program.roles) {
      const MemoryPeak result = replay_memory(program, role);
      for (const ByteCount left : result.left) EXPECT_EQ(left, 0) << text_of(c);
      EXPECT_GE(total(result.parts), total(role.persistent));
    }
  }
}

}  // namespace
}  // namespace stepcast
