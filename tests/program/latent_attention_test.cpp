// SPDX-License-Identifier: Apache-2.0
// Latent attention, windows and prediction modules: what they save, compute and send.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "expert_scenarios.h"
#include "program/decoder_layer.h"
#include "program/head_block.h"
#include "program/program.h"
#include "program/walk.h"

namespace stepcast {
namespace {

using testing::ExpertCase;
using testing::with_experts;

constexpr std::int64_t kQueryRank = 384, kLatentRank = 128, kPlain = 64, kRotary = 32, kValue = 64;

ExpertCase latent() {
  ExpertCase c;
  c.dense_layers = c.layers;  // the layers' other half is an MLP
  c.more_model = R"(,"mla":{"q_lora_rank":384,"kv_lora_rank":128,"qk_nope_head_dim":64,)"
                 R"("qk_rope_head_dim":32,"v_head_dim":64})";
  return c;
}

Block latent_layer(const ExpertCase& c, RecomputeMode mode = RecomputeMode::kNone) {
  return lower_decoder_layer(with_experts(c), mode);
}
ByteCount saved_bytes(const Block& block) { return total(block.pass(Pass::kForward).memory.after); }

// docs/moe.md, "Latent attention".
TEST(LatentAttention, SavesWhatTheClosedFormSays) {
  const ExpertCase c = latent();
  const std::int64_t t = c.sequence, h = c.hidden, a = c.heads;
  const std::int64_t latents = 4 * t * (kQueryRank + kLatentRank) + 2 * t * kRotary;
  const std::int64_t heads = 2 * t * a * (2 * (kPlain + kRotary) + 2 * kValue) + 4 * t * a;
  const std::int64_t mlp = 2 * t * h + 2 * t * h + 6 * t * 4 * h;  // norm's input and output
  EXPECT_EQ(saved_bytes(latent_layer(c)), 4 * t * h + latents + heads + mlp);
  ExpertCase again = c;  // queries, keys, values and what the norms of latents made
  again.recompute = R"({"mode":"selective","modules":["mla_up_proj"]})";
  EXPECT_EQ(
      saved_bytes(latent_layer(c)) - saved_bytes(latent_layer(again, RecomputeMode::kSelective)),
      2 * t * a * (2 * (kPlain + kRotary) + kValue) + 2 * t * (kQueryRank + kLatentRank));
}

// One byte an element, cast before the kernel that reads it; the gradient of the context likewise.
TEST(LatentAttention, ReadsItsHeadsInFp8WhereAsked) {
  ExpertCase c = latent();
  c.more_training = R"(,"precision":"fp8","fp8_recipe":"current","fp8_attention":true)";
  const Block block = latent_layer(c);
  const std::int64_t t = c.sequence, a = c.heads;
  for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
    const bool backward = pass == Pass::kBackward;
    const auto& operations = block.pass(pass).operations;
    const auto found = std::ranges::find_if(operations, [](const Operation& operation) {
      return std::holds_alternative<Attention>(operation.work);
    });
    ASSERT_NE(found, operations.end());
    EXPECT_EQ(std::get<Attention>(found->work).type, DataType::kFp8);
    const BufferId read = backward ? found->reads.back() : found->reads.front();
    const Buffer& copy = block.buffers[read.index()];
    EXPECT_EQ(copy.type, DataType::kFp8);
    EXPECT_EQ(copy.elements, t * a * (backward ? kValue : 2 * (kPlain + kRotary) + kValue));
  }
}

// Scores of the keys' width and a context of the values'; probabilities are kept in place of the
// logarithms of their sums.
TEST(LatentAttention, UnfusedMultipliesKeysAndValuesByTheirWidths) {
  ExpertCase c = latent();
  const ByteCount fused = saved_bytes(latent_layer(c));
  c.more_training = R"(,"attention":"unfused")";
  const Block block = latent_layer(c);
  const double t = c.sequence, a = c.heads, key = kPlain + kRotary;
  double forward = 0, backward = 0;
  for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
    for (const Operation& operation : block.pass(pass).operations) {
      if (!std::holds_alternative<AttentionProduct>(operation.work)) continue;
      (pass == Pass::kForward ? forward : backward) += flops_of(operation).value();
    }
  }
  EXPECT_EQ(forward, 2 * a * t * t * (key + kValue));
  EXPECT_EQ(backward, 2 * forward);
  EXPECT_EQ(saved_bytes(block) - fused,
            2 * c.heads * c.sequence * c.sequence - 4 * c.sequence * c.heads);
}

TEST(LatentAttention, GathersLatentsInsteadOfStates) {
  ExpertCase c = latent();
  c.tp = 2;
  c.dp = 4;
  std::vector<ByteCount> gathered;
  const Block block = latent_layer(c);
  for (const Operation& operation : block.pass(Pass::kForward).operations) {
    const auto* collective = std::get_if<Collective>(&operation.work);
    if (collective != nullptr && collective->kind == CollectiveKind::kAllGather) {
      gathered.push_back(collective->bytes);
    }
  }
  const std::int64_t t = c.sequence;
  EXPECT_EQ(gathered, (std::vector<ByteCount>{2 * t * kQueryRank, 2 * t * kLatentRank,
                                              2 * t * kRotary, 2 * t * c.hidden}));
}

TEST(LatentAttention, CountsTheFlopsOfBothHeadDimensions) {
  const Attention forward{false, 1, 16, 16, 1024, 1024, 192, true, DataType::kBf16, {128}};
  EXPECT_DOUBLE_EQ(flops_of(forward), 2.0 * 16 * 1024 * 512 * (192 + 128));
  Attention backward = forward;
  backward.backward = true;
  EXPECT_DOUBLE_EQ(flops_of(backward), 2.0 * 16 * 1024 * 512 * (3 * 192 + 2 * 128));
}

TEST(Windows, AreALayersOwn) {
  ExpertCase c;
  c.layers = 4;
  c.more_model = R"(,"attention_window":128,"attention_window_every":2)";
  const Program program = lower(with_experts(c));
  std::vector<std::int64_t> windows;
  for (const BlockId id : program.roles[0].chunks[0].blocks) {
    for (const Operation& operation : program.block(id).pass(Pass::kForward).operations) {
      const auto* attention = std::get_if<Attention>(&operation.work);
      if (attention != nullptr) windows.push_back(attention->window.value);
    }
  }
  EXPECT_EQ(windows, (std::vector<std::int64_t>{128, 0, 128, 0}));
}

TEST(Windows, CountTheKeysThatTheyHold) {
  Attention attention{false, 1, 1, 1, 1024, 1024, 64, true, DataType::kBf16};
  attention.window = {128};
  EXPECT_DOUBLE_EQ(flops_of(attention), 4.0 * 64 * (128.0 * 1024 - 128.0 * 128 / 2));
  attention.window = {};
  attention.chunk = {256};
  EXPECT_DOUBLE_EQ(flops_of(attention), 4.0 * 64 * 4 * (256.0 * 256 / 2));
}

// One latent_layer like the last, a product of 2h to h, and one more head and loss.
TEST(PredictionModules, AddALayerAJoinAndALoss) {
  ExpertCase c;
  const Scenario without = with_experts(c);
  c.more_model = R"(,"mtp_layers":1)";
  const Scenario with = with_experts(c);
  const Program plain = lower(without), more = lower(with);
  const auto count = [](const Program& program, const char* name) {
    std::int64_t found = 0;
    for (const BlockId id : program.roles[0].chunks[0].blocks) {
      found += std::ranges::count_if(
          program.block(id).pass(Pass::kForward).operations,
          [&](const Operation& operation) { return std::string(operation.name) == name; });
    }
    return found;
  };
  EXPECT_EQ(count(more, "experts_up") - count(plain, "experts_up"), 1);
  EXPECT_EQ(count(more, "cross_entropy") - count(plain, "cross_entropy"), 1);
  EXPECT_EQ(count(more, "mtp_join"), 1);
  EXPECT_EQ(more.roles[0].parameters - plain.roles[0].parameters, count_parameters(with.model).mtp);
}

// Each of two ranks makes half of the columns of all tokens. Backward the gradient of the rows is
// the same on both, unless they share the sequence and gather it: nothing is reduced there.
TEST(PredictionModules, GatherTheColumnsOfTensorRanks) {
  for (const bool shares_sequence : {false, true}) {
    ExpertCase c;
    c.tp = 2;
    c.dp = 4;
    c.dense_layers = c.layers;
    c.more_model = R"(,"mtp_layers":1)";
    Scenario scenario = with_experts(c);
    scenario.layout.sequence_parallel = shares_sequence;
    const Block head = lower_head(scenario, BackwardForm::kWhole);
    const ByteCount all = 2 * c.sequence * c.hidden;
    std::map<std::string, ByteCount> sent;
    for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
      for (const Operation& operation : head.pass(pass).operations) {
        const auto* moved = std::get_if<Collective>(&operation.work);
        if (moved != nullptr) sent[operation.name] = moved->bytes;
      }
    }
    EXPECT_EQ(sent.at("mtp_gather_columns"), all);
    EXPECT_EQ(sent.contains("mtp_rows_gradient"), shares_sequence);
    if (shares_sequence) {
      EXPECT_EQ(sent.at("mtp_rows_gradient"), all);
    }
  }
}

// In the chunk before the head's a module does the same work, and the head's states cross with its
// own beside them, in both directions.
TEST(PredictionModules, ApartFromTheHeadSendItTheirStates) {
  ExpertCase c;
  c.pp = 2;
  c.dp = 4;
  c.more_model = R"(,"mtp_layers":1,"tied_embeddings":false)";
  Scenario scenario = with_experts(c);
  const auto flops = [](const Program& program) {
    double out = 0;
    for (const Block& block : program.blocks) {
      if (block.kind != BlockKind::kPrediction && block.kind != BlockKind::kHead) continue;
      for_each_operation(block, [&](const Operation& one) { out += flops_of(one).value(); });
    }
    return out;
  };
  const auto sent = [](const Program& program) {
    ByteCount most = 0;
    for (const Role& role : program.roles) {
      for (const Instruction& instruction : role.instructions) {
        if (const auto* send = instruction.as<Send>()) most = std::max(most, send->bytes);
      }
    }
    return most;
  };
  const Program beside = lower(scenario);
  scenario.layout.mtp_apart = true;
  const Program apart = lower(scenario);
  EXPECT_DOUBLE_EQ(flops(apart), flops(beside));
  EXPECT_EQ(sent(apart), 2 * sent(beside));
  const auto holds = [&](const Role& role) {
    return std::ranges::any_of(role.chunks.back().blocks, [&](BlockId id) {
      return apart.block(id).kind == BlockKind::kPrediction;
    });
  };
  EXPECT_TRUE(holds(apart.roles[0]));
  EXPECT_FALSE(holds(apart.roles[1]));
}

// With the head on another stage than the embedding, modules have a copy of its table there.
TEST(PredictionModules, KeepACopyOfTheTableWithTheHead) {
  ExpertCase c;
  c.pp = 2;
  c.dp = 4;
  c.more_model = R"(,"mtp_layers":1,"tied_embeddings":false)";
  const Program program = lower(with_experts(c));
  int reductions = 0;
  for (const Role& role : program.roles) {
    for (const Instruction& instruction : role.instructions) {
      const auto* call = instruction.as<CollectiveCall>();
      reductions += call != nullptr && call->purpose == Purpose::kTiedTable ? 1 : 0;
    }
  }
  EXPECT_EQ(reductions, 2);
}

}  // namespace
}  // namespace stepcast
