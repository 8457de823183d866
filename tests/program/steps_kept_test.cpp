// SPDX-License-Identifier: Apache-2.0
// Steps that no compiler joins keep what they hand each other, in a layer of Llama's form and in a
// loss.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "program/decoder_layer.h"
#include "program/head_block.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

constexpr std::int64_t kKeptHidden = 512, kKeptFfn = 1536, kKeptTokens = 256, kVocab = 1024;

Scenario kept_llama(const std::string& training, const std::string& norm = "rmsnorm", int tp = 1) {
  return testing::scenario_from(R"({"stepcast": 1,
    "model": {"name": "m", "layers": 2, "hidden": 512, "heads": 8, "kv_heads": 8, "ffn": 1536,
              "vocab": 1024, "mlp": "swiglu", "position": "rope", "tied_embeddings": false,
              "biases": false, "norm": ")" +
                                norm + R"("},
    "cluster": {"base": "dgx-h100", "nodes": 1, "gpus": 8},
    "training": {"global_batch": 8, "sequence_length": 256, "framework": "fsdp",
                 "attention": "flash", )" +
                                training + R"(},
    "layout": {"micro_batch": 1, "zero": 3, "recompute": "none", "tp": )" +
                                std::to_string(tp) + "}}");
}

ByteCount kept_by(const Scenario& scenario) {
  const Block block = lower_decoder_layer(scenario, RecomputeMode::kNone);
  return total(block.pass(Pass::kForward).memory.after);
}

// A norm keeps its input in fp32 and what it scaled (6 bytes an element) in place of its input, and
// SwiGLU keeps what its activation made.
TEST(StepsKept, NormsAndActivationsOfEagerLayersKeepTheirSteps) {
  const ByteCount more =
      kept_by(kept_llama(R"("compile": false)")) - kept_by(kept_llama(R"("compile": true)"));
  EXPECT_EQ(more, kKeptTokens * (2 * (6 - 2) * kKeptHidden + 2 * kKeptFfn));
}

// LayerNorm is one kernel, compiled or not.
TEST(StepsKept, LayerNormKeepsNoMore) {
  const ByteCount more = kept_by(kept_llama(R"("compile": false)", "layernorm")) -
                         kept_by(kept_llama(R"("compile": true)", "layernorm"));
  EXPECT_EQ(more, kKeptTokens * 2 * kKeptFfn);
}

// PyTorch's projections of queries, keys and values are three, so that only the values outlive the
// rotation; Transformer Engine's is one, and its output lives as long as the values in it.
TEST(StepsKept, OutputsThatWereRotatedAreFreedWhereProjectionsAreApart) {
  const Block block = lower_decoder_layer(kept_llama(R"("compile": true)"), RecomputeMode::kNone);
  const auto made = [&](const Operation& operation) {
    return operation.name == std::string("qkv");
  };
  const auto& operations = block.pass(Pass::kForward).operations;
  const auto product = std::ranges::find_if(operations, made);
  ASSERT_NE(product, operations.end());
  ASSERT_EQ(product->writes.size(), 2U);
  EXPECT_EQ(block.buffers[product->writes[0].index()].elements, kKeptTokens * 2 * kKeptHidden);
  EXPECT_EQ(block.buffers[product->writes[1].index()].elements, kKeptTokens * kKeptHidden);
}

// PyTorch's loss of a vocabulary that tensor ranks share has one fp32 tensor of the logits more in
// each direction.
TEST(StepsKept, ALossOfSharedVocabularyWritesEachStep) {
  const auto scratch = [](int tp) {
    const Block block = lower_head(kept_llama(R"("compile": true)", "rmsnorm", tp));
    std::vector<std::int64_t> out;
    for (const Buffer& buffer : block.buffers) {
      if (buffer.name == std::string("loss_scratch")) out.push_back(buffer.elements);
    }
    return out;
  };
  const std::int64_t whole = kKeptTokens * kVocab;
  EXPECT_EQ(scratch(1), (std::vector<std::int64_t>{whole, 2 * whole}));
  EXPECT_EQ(scratch(2), (std::vector<std::int64_t>{2 * whole / 2, 3 * whole / 2}));
}

}  // namespace
}  // namespace stepcast
