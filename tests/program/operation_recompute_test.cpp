// SPDX-License-Identifier: Apache-2.0
// torchtitan_op on a gated layer with one product each for queries (1), keys (2), values (3), the
// output (4), both halves of the up projection (5, 6) and the down projection (7). Odd products and
// fused attention are kept, the rest is made again
// (torchtitan/distributed/activation_checkpoint.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <variant>

#include "core/each.h"
#include "program/decoder_layer.h"
#include "program/head_block.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

constexpr std::int64_t kHidden = 512, kKeys = 128, kFfn = 1536, kTokens = 256, kHeads = 8;

Scenario llama(const std::string& training, const std::string& layout = R"("tp": 1)",
               const std::string& model = R"(, "kv_heads": 2)") {
  return testing::scenario_from(R"({"stepcast": 1,
    "model": {"name": "m", "layers": 2, "hidden": 512, "heads": 8, "ffn": 1536,
              "vocab": 1024, "mlp": "swiglu", "norm": "rmsnorm", "position": "rope",
              "tied_embeddings": false, "biases": false)" +
                                model + R"(},
    "cluster": {"base": "dgx-h100", "nodes": 1, "gpus": 8},
    "training": {"global_batch": 8, "sequence_length": 256, "framework": "fsdp",
                 "attention": "flash", )" +
                                training + R"(},
    "layout": {"micro_batch": 1, "zero": 3,
               "recompute": {"mode": "selective", "modules": ["torchtitan_op"]}, )" +
                                layout + "}}");
}

Block layer_of(const Scenario& scenario) {
  LayerKind kind;
  kind.experts = scenario.model.moe.has_value();
  return lower_decoder_layer(scenario, RecomputeMode::kSelective, BackwardForm::kWhole, kind);
}

// Elements of 16 bits that live from forward to backward, the layer's output among them.
std::int64_t saved_by(const Block& block) {
  return (total(block.pass(Pass::kForward).memory.after) - 4 * kTokens * kHeads) / 2;
}

// Lists by name the columns that products make in the second forward.
std::map<std::string, std::int64_t> made_again(const Block& block) {
  std::map<std::string, std::int64_t> out;
  for (const Operation& operation : block.pass(Pass::kBackward).operations) {
    if (operation.phase != Phase::kRecompute) continue;
    if (const auto* product = std::get_if<Gemm>(&operation.work)) out[operation.name] += product->n;
    if (const auto* product = std::get_if<GroupedGemm>(&operation.work)) {
      out[operation.name] += product->outputs;
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

// Latent attention has a product more where queries have a latent: what comes behind it changes
// places, and the down projection is made again by eager autograd, which runs to the end.
constexpr std::int64_t kPlainHead = 32, kRotaryHead = 16, kValueHead = 48, kQueryLatent = 96,
                       kLatent = 64;
const std::string kOfQueries =
    R"(, "mla": {"q_lora_rank": 96, "kv_lora_rank": 64, "qk_nope_head_dim": 32,
                 "qk_rope_head_dim": 16, "v_head_dim": 48}, "kv_heads": 8)";
const std::string kOfKeys = R"(, "mla": {"kv_lora_rank": 64, "qk_nope_head_dim": 32,
                 "qk_rope_head_dim": 16, "v_head_dim": 48}, "kv_heads": 8)";

TEST(OperationRecompute, OfLatentQueriesKeepsTheLatents) {
  const auto block = [](const char* training) {
    return layer_of(llama(training, R"("tp": 1)", kOfQueries));
  };
  const std::int64_t row =
      kQueryLatent + kLatent + kRotaryHead + kHeads * kValueHead + kHidden + kFfn + kHidden;
  EXPECT_EQ(saved_by(block(R"("compile": true)")), kTokens * row);
  EXPECT_EQ(saved_by(block(R"("compile": false)")), kTokens * row);
  std::map<std::string, std::int64_t> wanted{{"query_up", kHeads * (kPlainHead + kRotaryHead)},
                                             {"key_value_up", kHeads * (kPlainHead + kValueHead)},
                                             {"mlp_up", kFfn}};
  EXPECT_EQ(made_again(block(R"("compile": true)")), wanted);
  EXPECT_EQ(made_again(block(R"("compile": false, "early_stop": true)")), wanted);
  wanted["mlp_down"] = kHidden;
  EXPECT_EQ(made_again(block(R"("compile": false)")), wanted);
}

TEST(OperationRecompute, OfWholeQueriesKeepsWhatHeadsAreMadeOf) {
  const Block block = layer_of(llama(R"("compile": true)", R"("tp": 1)", kOfKeys));
  const std::int64_t heads =
      kHeads * (kPlainHead + kRotaryHead + kPlainHead + kValueHead + kValueHead);
  EXPECT_EQ(saved_by(block), kTokens * (heads + kFfn + kHidden));
  const std::map<std::string, std::int64_t> wanted{
      {"key_value_down", kLatent + kRotaryHead}, {"attention_out", kHidden}, {"mlp_up", kFfn}};
  EXPECT_EQ(made_again(block), wanted);
}

// Results that ranks have only summed are summed again; what a kept product gave them is read
// again.
TEST(OperationRecompute, SumsAgainWhatIsNotScattered) {
  const auto sums = [](const std::string& training, const std::string& model) {
    const Block block = layer_of(llama(training, R"("tp": 4, "sequence_parallel": false)", model));
    std::map<std::string, std::int64_t> out = made_again(block);
    for (const Operation& operation : block.pass(Pass::kBackward).operations) {
      const auto* collective = std::get_if<Collective>(&operation.work);
      if (collective == nullptr || operation.phase != Phase::kRecompute) continue;
      EXPECT_EQ(collective->kind, CollectiveKind::kAllReduce);
      ++out[operation.name];
    }
    return out;
  };
  const std::string keys = R"(, "kv_heads": 4)";
  std::map<std::string, std::int64_t> wanted{{"qkv", kKeys / 2},
                                             {"attention_out", kHidden},
                                             {"attention_reduced", 1},
                                             {"mlp_up", kFfn / 4}};
  EXPECT_EQ(sums(R"("compile": true)", keys), wanted);
  wanted["mlp_reduced"] = 1;
  EXPECT_EQ(sums(R"("compile": false)", keys), wanted);
  const std::map<std::string, std::int64_t> latent = sums(R"("compile": true)", kOfQueries);
  EXPECT_EQ(latent.count("attention_out"), 0U);
  EXPECT_EQ(latent.at("attention_reduced"), 1);
}

constexpr std::int64_t kExperts = 8, kTopK = 2, kExpertFfn = 384, kSharedFfn = 640;
std::string experts_of(const std::string& more) {
  return R"(, "moe": {"experts": 8, "top_k": 2, "ffn": 384)" + more + "}";
}
std::string experts(const std::string& more = "") {
  return R"(, "kv_heads": 2)" + experts_of(more);
}
const std::string kShared = R"(, "shared_ffn": 640)";

// Neither the router's product nor those of the experts are kept. A second forward that does not
// stop early runs on behind the activation.
TEST(OperationRecompute, KeepsNothingThatExpertsMake) {
  const Block block = layer_of(llama(R"("compile": false)", R"("tp": 1)", experts()));
  EXPECT_EQ(saved_by(block), kTokens * (kHidden + kKeys + kHidden + kHidden));
  std::map<std::string, std::int64_t> wanted{{"qkv", kKeys},
                                             {"attention_out", kHidden},
                                             {"router", kExperts},
                                             {"experts_up", 2 * kExpertFfn},
                                             {"experts_down", kHidden}};
  EXPECT_EQ(made_again(block), wanted);
  wanted.erase("experts_down");
  for (const char* stops : {R"("early_stop": true)", R"("compile": true)"}) {
    EXPECT_EQ(made_again(layer_of(llama(stops, R"("tp": 1)", experts()))), wanted);
  }
}

// Rows that came from other ranks are kept, on both ways, and their weights in fp32. Nothing is
// sent again, and the host reads nothing again.
TEST(OperationRecompute, KeepsTheRowsThatRanksExchange) {
  for (const char* training : {R"("compile": true)", R"("compile": false)"}) {
    const Block block = layer_of(llama(training, R"("ep": 2)", experts()));
    const std::int64_t row = kHidden + kKeys + kHidden + kHidden, rows = kTokens * kTopK;
    EXPECT_EQ(2 * saved_by(block), 2 * kTokens * row + 2 * 2 * rows * kHidden + 4 * rows);
    AtLeast again(1);
    for (const Operation& operation : block.pass(Pass::kBackward).operations) {
      if (operation.phase != Phase::kRecompute) continue;
      ++again;
      EXPECT_FALSE(std::holds_alternative<Collective>(operation.work)) << operation.name;
      EXPECT_FALSE(std::holds_alternative<HostRead>(operation.work)) << operation.name;
    }
  }
}

// The shared expert's products count behind those of attention. It runs behind the routed ones,
// which an early stop therefore does not cut off.
TEST(OperationRecompute, CountsTheSharedExpertAsTheMlp) {
  const Block block = layer_of(llama(R"("early_stop": true)", R"("tp": 1)", experts(kShared)));
  std::map<std::string, std::int64_t> wanted{{"qkv", kKeys},
                                             {"attention_out", kHidden},
                                             {"router", kExperts},
                                             {"experts_up", 2 * kExpertFfn},
                                             {"experts_down", kHidden},
                                             {"shared_up", kSharedFfn}};
  EXPECT_EQ(made_again(block), wanted);
  const std::int64_t row = kHidden + kKeys + kHidden + kHidden;
  EXPECT_EQ(saved_by(block), kTokens * (row + kSharedFfn + kHidden));

  const Block latent =
      layer_of(llama(R"("compile": false)", R"("tp": 1)", kOfQueries + experts_of(kShared)));
  wanted = {{"query_up", kHeads * (kPlainHead + kRotaryHead)},
            {"key_value_up", kHeads * (kPlainHead + kValueHead)},
            {"router", kExperts},
            {"experts_up", 2 * kExpertFfn},
            {"experts_down", kHidden},
            {"shared_up", kSharedFfn},
            {"shared_down", kHidden}};
  EXPECT_EQ(made_again(latent), wanted);
}

// An adapter's two products count behind that of their matrix: if it is kept, so is the second, and
// what adapters of queries, values and the gate have made lies beside it. Backward reads what the
// first made, and of the down projection nothing else.
TEST(OperationRecompute, CountsProductsOfAdapters) {
  constexpr std::int64_t kRank = 16;
  const Block block = layer_of(llama(R"("compile": true, "mode": "lora", "lora_rank": 16)"));
  const std::int64_t row = 2 * (kHidden + kKeys + kFfn) + kHidden + 3 * kRank + kHidden;
  EXPECT_EQ(saved_by(block), kTokens * row);
  const std::map<std::string, std::int64_t> wanted{{"qkv", kKeys},
                                                   {"attention_out", kHidden},
                                                   {"mlp_up", kFfn},
                                                   {"adapter_down", 4 * kRank},
                                                   {"adapter_up", kKeys + kHidden + kFfn}};
  EXPECT_EQ(made_again(block), wanted);
}

// The layer of a prediction module is a layer: its second forward is that of the others.
TEST(OperationRecompute, OfAPredictionModuleIsThatOfALayer) {
  const Scenario scenario =
      llama(R"("compile": true)", R"("tp": 1)", R"(, "kv_heads": 2, "mtp_layers": 1)");
  const auto of_layer = made_again(layer_of(scenario));
  EXPECT_FALSE(of_layer.empty());
  EXPECT_EQ(made_again(lower_head(scenario, BackwardForm::kWhole)), of_layer);
}

}  // namespace
}  // namespace stepcast
