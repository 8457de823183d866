// SPDX-License-Identifier: Apache-2.0
// A loss that takes the tokens in parts: the same products, a part of the logits, and a sum of the
// table's gradient for each part.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "operation/operation.h"
#include "program/head_block.h"
#include "program/walk.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::scenario_from;

constexpr std::int64_t kLossTokens = 1000, kLossHidden = 256, kLossVocab = 2048;

Scenario with_chunks(int chunks, const std::string& mode = "pretrain") {
  return scenario_from(fmt::format(
      R"({{"stepcast": 1, "model": {{"layers": 2, "hidden": 256, "heads": 4, "kv_heads": 4,
          "ffn": 512, "vocab": 2048, "mlp": "swiglu", "norm": "rmsnorm", "position": "rope",
          "tied_embeddings": false, "biases": false, "vocab_multiple": 1}},
          "cluster": {{"base": "dgx-h100", "gpus": 1}},
          "training": {{"global_batch": 1, "sequence_length": 1000, "framework": "fsdp",
          "loss_chunks": {}, "mode": "{}", "compile": false}}, "layout": {{"zero": 3}}}})",
      chunks, mode));
}

double product_flops(const Block& block) {
  double out = 0;
  for_each_operation(block, [&](const Operation& operation) {
    if (std::holds_alternative<Gemm>(operation.work)) out += flops_of(operation).value();
  });
  return out;
}

std::int64_t largest_logits(const Block& block) {
  std::int64_t out = 0;
  for (const Buffer& buffer : block.buffers) {
    const std::string name = buffer.name;
    if (name.starts_with("logits") && name != "logits_wgrad") out = std::max(out, buffer.elements);
  }
  return out;
}

TEST(LossChunks, ProductsAreTheSameInParts) {
  const Block whole = lower_head(with_chunks(1));
  const double flops = product_flops(whole);
  EXPECT_DOUBLE_EQ(flops, 3.0 * 2 * kLossTokens * kLossHidden * kLossVocab);
  EXPECT_EQ(largest_logits(whole), kLossTokens * kLossVocab);
  for (const int chunks : {2, 7, 1000}) {
    const Block parts = lower_head(with_chunks(chunks));
    EXPECT_DOUBLE_EQ(product_flops(parts), flops) << chunks;
    const std::int64_t longest = (kLossTokens + chunks - 1) / chunks;
    EXPECT_EQ(largest_logits(parts), longest * kLossVocab) << chunks;
  }
}

TEST(LossChunks, EachPartAddsToTheGradientOfTheTable) {
  const auto sums = [](const Block& block) {
    int out = 0;
    for_each_operation(block, [&](const Operation& operation) {
      if (std::holds_alternative<Accumulate>(operation.work)) ++out;
    });
    return out;
  };
  EXPECT_EQ(sums(lower_head(with_chunks(1))), 0);  // into the unit's own
  EXPECT_EQ(sums(lower_head(with_chunks(8))), 8);
  EXPECT_EQ(sums(lower_head(with_chunks(8, "lora"))), 0);  // the table is frozen
}

TEST(LossChunks, NothingOfALossIsHeldBetweenForwardAndBackward) {
  const Block block = lower_head(with_chunks(4));
  for (const Operation& operation : block.pass(Pass::kForward).operations) {
    EXPECT_FALSE(std::holds_alternative<CrossEntropy>(operation.work));
  }
}

}  // namespace
}  // namespace stepcast
