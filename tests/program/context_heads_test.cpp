// SPDX-License-Identifier: Apache-2.0
// Sequences that c ranks share, of latent attention, whose keys and values have two widths, and of
// attention within windows: work and messages, against docs/context-parallel.md.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/each.h"
#include "program/decoder_layer.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

constexpr std::int64_t kCutSequence = 4096, kCutHeads = 16, kCutWindow = 512;
constexpr std::int64_t kCutKeyDim = 128 + 64, kCutValueDim = 128;

const char* const kLatentHeads =
    R"(,"mla":{"q_lora_rank":512,"kv_lora_rank":256,"qk_nope_head_dim":128,)"
    R"("qk_rope_head_dim":64,"v_head_dim":128})";
const char* const kWindowedHeads = R"(,"attention_window":512)";

Block cut_layer(const std::string& model, const std::string& method, int cp,
                const std::string& training = "", RecomputeMode mode = RecomputeMode::kNone) {
  const std::string cut = cp > 1 ? fmt::format(R"(,"cp":{},"cp_method":"{}")", cp, method) : "";
  const Scenario scenario = testing::scenario_from(fmt::format(
      R"({{"stepcast":1,"model":{{"layers":2,"hidden":1024,"heads":16,"kv_heads":16,"ffn":2048,)"
      R"("vocab":1024,"mlp":"swiglu","norm":"rmsnorm","position":"rope","biases":false,)"
      R"("vocab_multiple":1{}}},"cluster":{{"base":"dgx-h100","gpus":{}}},"training":{{)"
      R"("global_batch":8,"sequence_length":{}{}}},"layout":{{"dp":1{}}}}})",
      model, cp, kCutSequence, training, cut));
  return lower_decoder_layer(scenario, mode, BackwardForm::kWhole,
                             {false, scenario.model.attention_window > 0});
}

double flops_of_attention(const Block& block, Pass pass) {
  double sum = 0;
  for (const Operation& operation : block.pass(pass).operations) {
    if (std::holds_alternative<Attention>(operation.work)) sum += flops_of(operation).value();
  }
  return sum;
}

ByteCount sent_bytes(const Block& block, Pass pass, CollectiveKind kind) {
  ByteCount bytes = 0;
  for (const Operation& operation : block.pass(pass).operations) {
    const auto* call = std::get_if<Collective>(&operation.work);
    if (call != nullptr && call->kind == kind && call->group.spans(Axis::kCp)) bytes += call->bytes;
  }
  return bytes;
}

// Documents of 512 tokens span 512 - 512^2 / (3 * 4096), rounded, where rows are cut from them.
// Each rank has a c-th of their pairs.
TEST(ContextHeads, ShareTheWorkOfPackedDocumentsEvenly) {
  const std::string documents = R"(,"document_length":512,"document_deviation":0)";
  const double whole = flops_of_attention(cut_layer("", "", 1), Pass::kForward);
  const double alone = flops_of_attention(cut_layer("", "", 1, documents), Pass::kForward);
  EXPECT_DOUBLE_EQ(alone, whole * 491 / 4096);
  for (const char* method : each_of(std::vector{"ring", "all_gather", "all_to_all"})) {
    for (const char* model : each_of(std::vector{"", kLatentHeads})) {
      const double one = flops_of_attention(cut_layer(model, "", 1, documents), Pass::kForward);
      const Block cut = cut_layer(model, method, 4, documents);
      EXPECT_NEAR(flops_of_attention(cut, Pass::kForward), one / 4, 0.01 * one) << method << model;
    }
  }
}

// A query sees its window or its document, whichever is shorter.
TEST(ContextHeads, SeeNoFurtherThanTheWindowInLongDocuments) {
  const auto forward = [](const char* documents) {
    return flops_of_attention(cut_layer(kWindowedHeads, "", 1, documents), Pass::kForward);
  };
  EXPECT_DOUBLE_EQ(forward(R"(,"document_length":3000,"document_deviation":0)"), forward(""));
  EXPECT_LT(forward(R"(,"document_length":400,"document_deviation":0)"), forward(""));
}

// Every rank has 1/c of what one rank alone would compute.
TEST(ContextHeads, ShareTheWorkOfLatentAttentionEvenly) {
  const Block alone = cut_layer(kLatentHeads, "", 1);
  for (const char* method : each_of(std::vector{"ring", "all_gather", "all_to_all"})) {
    for (const int cp : each_of(std::vector{2, 4})) {
      const Block block = cut_layer(kLatentHeads, method, cp);
      for (const Pass pass : each_of(std::vector{Pass::kForward, Pass::kBackward})) {
        EXPECT_NEAR(flops_of_attention(block, pass) * cp / flops_of_attention(alone, pass), 1,
                    1e-12)
            << method << cp;
      }
    }
  }
}

// KV = (s/c) a (d_qk + d_v) elements of 2 bytes: K and V are expanded, and go in one message.
TEST(ContextHeads, OfLatentAttentionSendKeysAndValuesOfTwoWidths) {
  for (const int cp : each_of(std::vector{2, 4, 8})) {
    const ByteCount kv = kCutSequence / cp * kCutHeads * (kCutKeyDim + kCutValueDim) * 2;
    const Block ring = cut_layer(kLatentHeads, "ring", cp);
    EXPECT_EQ(sent_bytes(ring, Pass::kForward, CollectiveKind::kSendReceive), (cp - 1) * kv);
    EXPECT_EQ(sent_bytes(ring, Pass::kBackward, CollectiveKind::kSendReceive), 2 * (cp - 1) * kv);
    const Block gather = cut_layer(kLatentHeads, "all_gather", cp);
    EXPECT_EQ(sent_bytes(gather, Pass::kForward, CollectiveKind::kAllGather), cp * kv);
    EXPECT_EQ(sent_bytes(gather, Pass::kBackward, CollectiveKind::kAllGather), cp * kv);
    EXPECT_EQ(sent_bytes(gather, Pass::kBackward, CollectiveKind::kReduceScatter), cp * kv);
  }
}

// Queries and keys are d_qk wide, values and the context d_v.
TEST(ContextHeads, OfLatentAttentionAreExchangedInTheirWidths) {
  const Block block = cut_layer(kLatentHeads, "all_to_all", 4);
  const ByteCount each = kCutSequence / 4 * kCutHeads * 2 * (kCutKeyDim + kCutValueDim) * 2;
  EXPECT_EQ(sent_bytes(block, Pass::kForward, CollectiveKind::kAllToAll), each);
  EXPECT_EQ(sent_bytes(block, Pass::kBackward, CollectiveKind::kAllToAll), each);
}

// Recomputed heads are sent again: a ring keeps the keys and values that came last, and the others
// would be there no more.
TEST(ContextHeads, RecomputedLatentAttentionSendsItsKeysAgain) {
  const std::string recompute = R"(,"attention":"flash")";
  const Block block = cut_layer(kLatentHeads, "ring", 4, recompute, RecomputeMode::kFull);
  const ByteCount kv = kCutSequence / 4 * kCutHeads * (kCutKeyDim + kCutValueDim) * 2;
  EXPECT_EQ(sent_bytes(block, Pass::kBackward, CollectiveKind::kSendReceive), (1 + 2) * 3 * kv);
}

// A query sees w - w^2/2s keys on average: 1/c of w (s - w/2) pairs, whatever the method.
TEST(ContextHeads, ShareTheWorkOfAWindowEvenly) {
  const Block alone = cut_layer(kWindowedHeads, "", 1);
  const double pairs = kCutWindow * (kCutSequence - kCutWindow / 2.0);
  EXPECT_NEAR(flops_of_attention(alone, Pass::kForward) / (4.0 * kCutHeads * 64 * pairs), 1, 1e-3);
  for (const char* method : each_of(std::vector{"all_gather", "all_to_all"})) {
    for (const int cp : each_of(std::vector{2, 4, 8})) {
      const Block block = cut_layer(kWindowedHeads, method, cp);
      for (const Pass pass : each_of(std::vector{Pass::kForward, Pass::kBackward})) {
        EXPECT_NEAR(flops_of_attention(block, pass) * cp / flops_of_attention(alone, pass), 1, 1e-3)
            << method << cp;
      }
    }
  }
}

// All keys are gathered, and those outside the window cut off behind (Transformer Engine).
TEST(ContextHeads, OfAWindowGatherAllKeys) {
  const ByteCount whole = kCutSequence * 2 * kCutHeads * 64 * 2;
  EXPECT_EQ(sent_bytes(cut_layer(kWindowedHeads, "all_gather", 4), Pass::kForward,
                       CollectiveKind::kAllGather),
            whole);
}

}  // namespace
}  // namespace stepcast
