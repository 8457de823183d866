// SPDX-License-Identifier: Apache-2.0
// torchtitan_op on a gated layer with one product each for queries (1), keys (2), values (3), the
// output (4), both halves of the up projection (5, 6) and the down projection (7). Odd products and
// fused attention are kept, the rest is made again
// (torchtitan/distributed/activation_checkpoint.py).
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "program/decoder_layer.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

constexpr std::int64_t kHidden = 512, kKeys = 128, kFfn = 1536, kTokens = 256, kHeads = 8;

Scenario llama(const std::string& training, const std::string& layout = R"("tp": 1)") {
  return testing::scenario_from(R"({"stepcast": 1,
    "model": {"name": "m", "layers": 2, "hidden": 512, "heads": 8, "kv_heads": 2, "ffn": 1536,
              "vocab": 1024, "mlp": "swiglu", "norm": "rmsnorm", "position": "rope",
              "tied_embeddings": false, "biases": false},
    "cluster": {"base": "dgx-h100", "nodes": 1, "gpus": 8},
    "training": {"global_batch": 8, "sequence_length": 256, "framework": "fsdp",
                 "attention": "flash", )" +
                                training + R"(},
    "layout": {"micro_batch": 1, "zero": 3,
               "recompute": {"mode": "selective", "modules": ["torchtitan_op"]}, )" +
                                layout + "}}");
}

Block layer_of(const Scenario& scenario) {
  return lower_decoder_layer(scenario, RecomputeMode::kSelective);
}

// Elements of 16 bits that live from forward to backward, the layer's output among them.
std::int64_t saved_by(const Block& block) {
  return (total(block.pass(Pass::kForward).memory.after) - 4 * kTokens * kHeads) / 2;
}

// Lists by name the columns that products make in the second forward.
std::map<std::string, std::int64_t> made_again(const Block& block) {
  std::map<std::string, std::int64_t> out;
  for (const Operation& operation : block.pass(Pass::kBackward).operations) {
    const auto* product = std::get_if<Gemm>(&operation.work);
    if (product != nullptr && operation.phase == Phase::kRecompute) {
      out[operation.name] += product->n;
    }
  }
  return out;
}

// Queries, values, context, the first half of up, the output of the layer; eager autograd keeps
// the seventh product besides.
TEST(OperationRecompute, KeepsEverySecondProductAndAttention) {
  const std::int64_t row = kHidden + kKeys + kHidden + kFfn + kHidden;
  EXPECT_EQ(saved_by(layer_of(llama(R"("compile": true)"))), kTokens * row);
  EXPECT_EQ(saved_by(layer_of(llama(R"("compile": false)"))), kTokens * (row + kHidden));
}

TEST(OperationRecompute, MakesTheOthersOnceMore) {
  const std::map<std::string, std::int64_t> wanted{
      {"qkv", kKeys}, {"attention_out", kHidden}, {"mlp_up", kFfn}};
  EXPECT_EQ(made_again(layer_of(llama(R"("compile": true)"))), wanted);
}

TEST(OperationRecompute, AttentionRunsOnceForwardAndOnceBackward) {
  const Block block = layer_of(llama(R"("compile": true)"));
  int forward = 0, backward = 0;
  for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
    for (const Operation& operation : block.pass(pass).operations) {
      const auto* attention = std::get_if<Attention>(&operation.work);
      if (attention != nullptr) ++(attention->backward ? backward : forward);
    }
  }
  EXPECT_EQ(forward, 1);
  EXPECT_EQ(backward, 1);
}

// Results that were reduced and scattered are kept, so that the fourth product need not run again;
// those that were gathered are not.
TEST(OperationRecompute, KeepsWhatWasScatteredAndGathersAgain) {
  const Block block =
      layer_of(llama(R"("compile": true)", R"("tp": 4, "sequence_parallel": true)"));
  const std::map<std::string, std::int64_t> wanted{{"qkv", kKeys / 2}, {"mlp_up", kFfn / 4}};
  EXPECT_EQ(made_again(block), wanted);
  std::map<CollectiveKind, int> again;
  for (const Operation& operation : block.pass(Pass::kBackward).operations) {
    const auto* collective = std::get_if<Collective>(&operation.work);
    if (collective != nullptr && operation.phase == Phase::kRecompute) ++again[collective->kind];
  }
  EXPECT_EQ(again, (std::map<CollectiveKind, int>{{CollectiveKind::kAllGather, 2}}));
}

// aten._scaled_mm is not on the list of what is kept.
TEST(OperationRecompute, KeepsNoProductInFp8) {
  const Block block = layer_of(llama(R"("compile": true, "precision": "fp8")"));
  const std::map<std::string, std::int64_t> wanted{
      {"qkv", kHidden + 2 * kKeys}, {"attention_out", kHidden}, {"mlp_up", 2 * kFfn}};
  EXPECT_EQ(made_again(block), wanted);
}

}  // namespace
}  // namespace stepcast
