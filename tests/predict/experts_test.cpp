// SPDX-License-Identifier: Apache-2.0
// Forecasts of models with experts: FLOPs, published memory, and what folding must not change.
#include <gtest/gtest.h>

#include <random>

#include "expert_scenarios.h"
#include "predict/prediction.h"
#include "random_choice.h"

namespace stepcast {
namespace {

using testing::ExpertCase;
using testing::pick;
using testing::scenario_from;
using testing::source_folders;
using testing::text_of;
using testing::with_experts;

Prediction forecast(const std::string& text, const PredictOptions& options = {}) {
  auto prediction = predict(scenario_from(text), source_folders(), options);
  EXPECT_TRUE(prediction.has_value())
      << text << (prediction ? std::string() : to_string(prediction.error()));
  return prediction ? std::move(*prediction) : Prediction{};
}

// A product of the model per token counts 6 for each weight that the token meets.
TEST(ModelFlops, CountTheExpertsThatATokenVisits) {
  ExpertCase c;
  c.shared_ffn = 1024;
  const double h = c.hidden, s = c.sequence, f = c.ffn;
  const double layer = 4 * h * h + 3 * h * (c.top_k * f + c.shared_ffn) + h * c.experts;
  const double expected = c.layers * (6 * layer + 12 * s * h) + 6 * h * c.vocab;
  const double tokens = c.global_batch * s;
  EXPECT_NEAR(model_flops(with_experts(c)).value() / tokens, expected, 1e-9 * expected);
}

TEST(ModelFlops, OfAPredictionModuleAreALayerAJoinAndAHead) {
  ExpertCase c;
  const double h = c.hidden, s = c.sequence;
  const double layer = 4 * h * h + 3 * h * c.top_k * c.ffn + h * c.experts;
  const double tokens = c.global_batch * s;
  const double without = model_flops(with_experts(c)).value() / tokens;
  c.more_model = R"(,"mtp_layers":1)";
  const double expected = 6 * layer + 12 * s * h + 6 * (2 * h * h) + 6 * h * c.vocab;
  EXPECT_NEAR(model_flops(with_experts(c)).value() / tokens - without, expected, 1e-6 * expected);
}

// In a window a token sees as many keys as it holds.
TEST(ModelFlops, AttentionSeesTheKeysOfItsWindow) {
  ExpertCase c;
  const double whole = model_attention_flops(with_experts(c)).value();
  const double h = c.hidden, s = c.sequence;
  EXPECT_NEAR(whole, c.layers * 12 * s * h * c.global_batch * s, 1e-9 * whole);
  c.more_model = R"(,"attention_window":128)";
  EXPECT_NEAR(model_attention_flops(with_experts(c)).value(), whole * 128 / s, 1e-9 * whole);
  c.more_model = R"(,"attention_window":128,"attention_window_every":2)";
  EXPECT_NEAR(model_attention_flops(with_experts(c)).value(), whole * (1 + 128 / s) / 2,
              1e-9 * whole);
}

// The waterfall counts attention's ideal time by the keys that it sees.
TEST(Waterfall, AWindowLeavesAttentionNoIdealTimeOfKeysItDoesNotSee) {
  ExpertCase c;
  c.sequence = 8192;
  c.more_model = R"(,"attention_window":128)";
  const Scenario scenario = with_experts(c);
  const auto prediction = predict(scenario, source_folders());
  ASSERT_TRUE(prediction) << to_string(prediction.error().front());
  const Waterfall& steps = prediction->waterfall;
  const double peak = scenario.cluster.spec.accelerator.peak(DataType::kBf16)->value();
  const double gpus = static_cast<double>(scenario.cluster.gpus());
  const double ideal = model_attention_flops(scenario).value() / peak / gpus;
  EXPECT_GE(steps.attention_inefficiency.value(), 0);
  EXPECT_LT(ideal, 0.1 * 12.0 * 8192 * 8192 * c.hidden * c.layers * c.global_batch / peak / gpus);
}

// Grids of experts that fold as dense layers do, over nodes that they straddle.
std::string random_expert_scenario(std::mt19937& random) {
  ExpertCase c;
  c.cluster = pick(random, {0, 1}) == 0 ? "dgx-h100" : "dgx-a100-80g";
  c.hidden = 256;
  c.ffn = 256;
  c.vocab = 512;
  c.sequence = 256;
  c.tp = pick(random, {1, 2});
  c.pp = pick(random, {1, 2});
  c.dp = pick(random, {2, 4, 8});
  const int ranks = c.tp * c.dp;
  c.etp = pick(random, {1, c.tp});
  c.ep = pick(random, {1, 2, ranks / c.etp});
  c.layers = 2 * c.pp;
  c.dense_layers = pick(random, {0, 1});
  c.shared_ffn = pick(random, {0, 256});
  c.imbalance = pick(random, {0, 1}) == 0 ? 1 : 1.3;
  c.capacity_factor = pick(random, {0, 0, 1});
  const char* const dispatchers[] = {"alltoall", "allgather", "deepep", "hybridep"};
  c.dispatcher = dispatchers[pick(random, {0, 1, 2, 3})];
  c.zero = pick(random, {0, 1});
  c.global_batch = c.dp * c.pp * 2;
  c.recompute = pick(random, {0, 1}) == 0 ? R"("none")"
                                          : R"({"mode":"selective","modules":["moe_act","moe"]})";
  if (pick(random, {0, 1}) == 1) c.more_layout = R"(,"overlap":{"grad_reduce":true})";
  if (pick(random, {0, 1}) == 1) c.more_model = R"(,"mtp_layers":1)";
  return text_of(c);
}

TEST(Experts, FoldIntoTheTimesOfEveryRank) {
  std::mt19937 random(20250101);
  std::size_t folded_classes = 0, ranks = 0;
  for (int i = 0; i < 24; ++i) {
    const std::string text = random_expert_scenario(random);
    const Prediction folded = forecast(text), whole = forecast(text, {.fold = false});
    const double step = whole.step_time.value();
    EXPECT_NEAR(folded.step_time.value(), step, 1e-9 * step) << text;
    EXPECT_EQ(folded.peak_memory, whole.peak_memory) << text;
    EXPECT_NEAR(folded.time.total().value(), folded.step_time.value(), 1e-9 * step) << text;
    folded_classes += folded.rank_classes.size();
    ranks += whole.rank_classes.size();
  }
  EXPECT_LT(folded_classes * 2, ranks);
}

// The whole of a rank's times is what it is made of, with exchanges as the experts' own.
TEST(Experts, ExchangesCountAsTheirsAndGrowWithImbalance) {
  ExpertCase c;
  c.dp = 16;
  c.ep = 16;
  c.hidden = 4096;
  c.ffn = 2048;
  c.sequence = 4096;
  const double even = forecast(text_of(c)).step_time.value();
  const Prediction prediction = forecast(text_of(c));
  EXPECT_GT(prediction.time.exposed_ep.value(), 0);
  c.imbalance = 1.5;
  EXPECT_GT(forecast(text_of(c)).step_time.value(), even);
}

// DeepSeek-V3 in bf16 on 256 GPUs as NVIDIA's report has it (arXiv 2603.07685, tables 3 and 4):
// PP 4, VPP 4, EP 64, sequences of 4096. Its figures are GiB of the stage with four layers of
// experts in each chunk and 60 of them alive, and its activations still hold the outputs of the
// second product, which applying the routing weights before it saves (26.3 GiB).
Prediction deepseek_v3(const std::string& recompute) {
  return forecast(
      R"({"stepcast":1,"model":"deepseek-v3","cluster":"dgx-h100x32",
          "training":{"global_batch":2048,"sequence_length":4096,"framework":"megatron"},
          "layout":{"tp":1,"pp":4,"virtual_stages":4,"schedule":"interleaved","ep":64,"etp":1,
            "micro_batch":1,"stage_layers":[4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,1],
            "recompute":)" +
      recompute + "}}");
}

double gib_of_third_stage(const Prediction& prediction, MemoryCategory category) {
  for (const RankClass& one : prediction.rank_classes) {
    const auto part = static_cast<double>(one.memory[static_cast<std::size_t>(category)]);
    if (one.stage == 2) return part / (1 << 30);
  }
  return 0;
}

TEST(PublishedMemory, OfDeepSeekV3IsMet) {
  const Prediction prediction = deepseek_v3(R"("none")");
  const auto of = [&](MemoryCategory part) { return gib_of_third_stage(prediction, part); };
  EXPECT_NEAR(of(MemoryCategory::kParameters) + of(MemoryCategory::kGradients), 36.4, 0.05 * 36.4);
  EXPECT_NEAR(of(MemoryCategory::kOptimizer), 32.1, 0.05 * 32.1);
  EXPECT_NEAR(of(MemoryCategory::kActivations) + 26.3, 131.0, 0.05 * 131.0);
}

TEST(PublishedMemory, OfDeepSeekV3IsSavedByRecomputingUpProjections) {
  const Prediction again = deepseek_v3(R"({"mode":"selective","modules":["mla_up_proj"]})");
  constexpr auto kPart = MemoryCategory::kActivations;
  const double less =
      gib_of_third_stage(deepseek_v3(R"("none")"), kPart) - gib_of_third_stage(again, kPart);
  EXPECT_NEAR(less, 30.4, 0.05 * 30.4);
}

// The exchanges of Muon's update are those of its own step: parameters and gradients that the same
// ranks gather and reduce beside passes share links as they do with AdamW.
TEST(MuonOfFsdp, TakesNoTrafficFromTheLinks) {
  const auto with = [](const std::string& optimizer) {
    return forecast(R"({"stepcast":1,"model":"qwen3-235b-a22b","cluster":"dgx-h100x32",
                        "training":{"framework":"fsdp","global_batch":512,"sequence_length":4096,
                                    "optimizer":")" +
                    optimizer + R"("},"layout":{"ep":8,"zero":3,"recompute":"full"}})");
  };
  const Prediction adam = with("adamw"), muon = with("muon");
  EXPECT_GT(muon.step_time, adam.step_time);
  EXPECT_NEAR((muon.step_time - adam.step_time).value(),
              (muon.time.optimizer - adam.time.optimizer).value(), 0.05 * adam.step_time.value());
}

}  // namespace
}  // namespace stepcast
