// SPDX-License-Identifier: Apache-2.0
// Activation bytes of one layer against the closed forms of Korthikanti et al. 2022, table 2:
// s sequence, b micro-batch, h hidden, a heads, t tensor-parallel ranks, 16-bit, dropout on.
#include <gtest/gtest.h>

#include "program/decoder_layer.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

// Saved by the forward pass. The output counts here, the input with the layer before.
ByteCount saved(const GptCase& c, RecomputeMode mode) {
  return total(lower_decoder_layer(gpt(c), mode).pass(Pass::kForward).memory.after);
}

struct Sizes {
  ByteCount sbh, scores;  // scores = a s^2 b
};
Sizes sizes(const GptCase& c) {
  const ByteCount s = c.sequence, b = c.micro_batch, h = c.hidden;
  return {s * b * h, c.heads * s * s * b};
}

TEST(ActivationMemory, OfOneRankIs34sbhPlus5as2b) {
  GptCase c;
  c.micro_batch = 2;
  const auto [sbh, scores] = sizes(c);
  EXPECT_EQ(saved(c, RecomputeMode::kNone), 34 * sbh + 5 * scores);
}

TEST(ActivationMemory, UnderTensorParallelismKeeps10sbhWhole) {
  GptCase c;
  c.tp = 4;
  c.heads = 16;
  const auto [sbh, scores] = sizes(c);
  EXPECT_EQ(saved(c, RecomputeMode::kNone), 10 * sbh + 24 * sbh / 4 + 5 * scores / 4);
}

// Megatron's softmax kernel takes sequences times heads in fours. Where a rank has two, each step
// is a kernel, and the softmax keeps its result in fp32 too.
TEST(ActivationMemory, ASoftmaxInStepsKeepsItsFp32Result) {
  GptCase c;
  c.tp = 4;
  const auto [sbh, scores] = sizes(c);
  EXPECT_EQ(saved(c, RecomputeMode::kNone), 10 * sbh + 24 * sbh / 4 + (5 + 4) * scores / 4);
}

TEST(ActivationMemory, UnderSequenceParallelismIsDividedWhole) {
  GptCase c;
  c.tp = 4;
  c.heads = 16;
  c.sequence_parallel = true;
  const auto [sbh, scores] = sizes(c);
  EXPECT_EQ(saved(c, RecomputeMode::kNone), (34 * sbh + 5 * scores) / 4);
}

TEST(ActivationMemory, SelectiveRecomputeDropsTheScores) {
  GptCase c;
  c.tp = 4;
  c.sequence_parallel = true;
  const auto [sbh, scores] = sizes(c);
  EXPECT_EQ(saved(c, RecomputeMode::kSelective), 34 * sbh / 4);
}

TEST(ActivationMemory, FullRecomputeKeepsTheLayerInput) {
  GptCase c;
  c.tp = 4;
  const auto [sbh, scores] = sizes(c);
  EXPECT_EQ(saved(c, RecomputeMode::kFull), 2 * sbh);
}

// No scores; 4 bytes of log-sum-exp per head and token instead.
TEST(ActivationMemory, FlashAttentionIs34sbhPlus4asb) {
  GptCase c;
  c.attention = "flash";
  const auto [sbh, scores] = sizes(c);
  EXPECT_EQ(saved(c, RecomputeMode::kNone), 34 * sbh + 4 * scores / c.sequence);
}

TEST(ActivationMemory, WithoutDropoutThereAreNoMasks) {
  GptCase c;
  c.dropout = 0;
  const auto [sbh, scores] = sizes(c);
  // Two masks of sbh bytes fall away, and of the scores mask and dropped copy.
  EXPECT_EQ(saved(c, RecomputeMode::kNone), 32 * sbh + 2 * scores);
}

// Forward and backward together leave nothing but the two boundary tensors.
TEST(ActivationMemory, BackwardFreesWhatForwardSaved) {
  for (const RecomputeMode mode :
       {RecomputeMode::kNone, RecomputeMode::kSelective, RecomputeMode::kFull}) {
    for (const char* attention : {"flash", "unfused"}) {
      GptCase c;
      c.tp = 2;
      c.attention = attention;
      const Block block = lower_decoder_layer(gpt(c), mode);
      const ByteCount boundary = 2 * sizes(c).sbh;
      // + output, - input, + input gradient, - output gradient.
      EXPECT_EQ(total(block.pass(Pass::kForward).memory.after) +
                    total(block.pass(Pass::kBackward).memory.after),
                boundary - boundary + boundary - boundary);
    }
  }
}

TEST(ActivationMemory, RecomputingRebuildsTheWholeLayerAtItsPeak) {
  GptCase c;
  const Block none = lower_decoder_layer(gpt(c), RecomputeMode::kNone);
  const Block full = lower_decoder_layer(gpt(c), RecomputeMode::kFull);
  // Saved + peak of the backward: recomputation only moves the saved tensors into the backward.
  EXPECT_GE(full.pass(Pass::kBackward).memory.peak,
            total(none.pass(Pass::kForward).memory.after) - 2 * sizes(c).sbh);
}

}  // namespace
}  // namespace stepcast
