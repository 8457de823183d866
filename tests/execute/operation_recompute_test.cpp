// SPDX-License-Identifier: Apache-2.0
// torchtitan_op: a layer that makes operations again trains as one that keeps everything, and holds
// what is forecast.
#include <gtest/gtest.h>

#include <string>

#include "forecast_peaks.h"
#include "threaded_training.h"
#include "variant_case.h"

namespace stepcast {
namespace {

using testing::train;
using testing::TrainedRun;
using testing::variant;
using testing::VariantCase;

constexpr int kSteps = 3;
constexpr double kTolerance = 1e-5;

struct Recomputed {
  std::string name;
  VariantCase one, many;
};

void PrintTo(const Recomputed& recomputed, std::ostream* out) { *out << recomputed.name; }

class OperationRecompute : public ::testing::TestWithParam<Recomputed> {};

TEST_P(OperationRecompute, TrainsAsOneRankThatKeepsAll) {
  const Scenario one = variant(GetParam().one), many = variant(GetParam().many);
  ExecutorOptions options;
  if (one.model.moe) options.spread = spread_of(many);
  const TrainedRun& reference = testing::trained_once(one, kSteps, options);
  const TrainedRun again = train(many, kSteps);
  for (std::size_t s = 0; s < kSteps; ++s) {
    EXPECT_NEAR(again.loss[s] / reference.loss[s], 1, kTolerance) << "step " << s;
    EXPECT_NEAR(again.gradient_norm[s] / reference.gradient_norm[s], 1, 1e-4) << "step " << s;
  }
  EXPECT_LT(again.model.relative_error(reference.model), kTolerance);
  testing::expect_forecast_peaks(many, again);
}

const char* const kGrouped = "";
const char* const kNormedHeads = R"(,"query_key_norm":true,"qkv_bias":true)";
const char* const kBetweenNorms = R"(,"norms_per_layer":4)";
const char* const kLatent = R"(,"mla":{"q_lora_rank":24,"kv_lora_rank":16,"qk_nope_head_dim":6,)"
                            R"("qk_rope_head_dim":4,"v_head_dim":8})";
const char* const kWholeQueries = R"(,"mla":{"kv_lora_rank":16,"qk_nope_head_dim":6,)"
                                  R"("qk_rope_head_dim":4,"v_head_dim":12})";
const char* const kExperts = R"(,"moe":{"experts":8,"top_k":2,"ffn":24})";
const char* const kSharedExperts =
    R"(,"moe":{"experts":8,"top_k":2,"ffn":24,"shared_experts":1,"dense_layers":1})";
const char* const kDeepSeek =
    R"(,"mla":{"q_lora_rank":24,"kv_lora_rank":16,"qk_nope_head_dim":6,"qk_rope_head_dim":4,)"
    R"("v_head_dim":8},"moe":{"experts":8,"top_k":2,"ffn":24,"shared_experts":1,)"
    R"("dense_layers":1})";
const char* const kPredicting = R"(,"mtp_layers":1)";

Recomputed recomputed(const std::string& name, const char* model, const char* training = "",
                      int ep = 0, int tp = 1, const char* layout = "") {
  Recomputed out{name, {}, {}};
  out.one.model = model;
  const std::string text = model;
  const bool latent = text.find("mla") != std::string::npos;
  out.one.kv_heads = latent ? 4 : 2;
  out.many = out.one;
  out.many.framework = "fsdp";
  out.many.zero = 3;
  out.many.dp = 2;
  out.many.tp = tp;
  out.many.micro_batch = 2;
  out.many.training = training;
  out.many.layout =
      R"(,"recompute":{"mode":"selective","modules":["torchtitan_op"]})" + std::string(layout);
  if (tp > 1 && *layout == 0) out.many.layout += R"(,"sequence_parallel":true)";
  out.many.experts = ep > 0;
  out.many.ep = ep > 0 ? ep : 1;
  return out;
}

const char* const kCompiled = R"(,"compile":true)";
const char* const kStops = R"(,"early_stop":true)";
const char* const kSums = R"(,"sequence_parallel":false)";

INSTANTIATE_TEST_SUITE_P(
    Layers, OperationRecompute,
    ::testing::Values(
        recomputed("Grouped", kGrouped), recomputed("Compiled", kGrouped, kCompiled),
        recomputed("Tp2", kGrouped, "", 0, 2), recomputed("Tp2Sums", kGrouped, "", 0, 2, kSums),
        recomputed("NormedHeads", kNormedHeads),
        recomputed("BetweenNorms", kBetweenNorms, kCompiled), recomputed("Latent", kLatent),
        recomputed("LatentCompiled", kLatent, kCompiled),
        recomputed("BetweenNormsTp2Sums", kBetweenNorms, "", 0, 2, kSums),
        recomputed("LatentTp2", kLatent, "", 0, 2),
        recomputed("LatentTp2Sums", kLatent, kCompiled, 0, 2, kSums),
        recomputed("WholeQueries", kWholeQueries), recomputed("Experts", kExperts, "", 1),
        recomputed("ExpertsEp2", kExperts, "", 2),
        recomputed("ExpertsEp2Compiled", kExperts, kCompiled, 2),
        recomputed("ExpertsEp2Stop", kExperts, kStops, 2),
        recomputed("ExpertsEp2Tp2", kExperts, "", 2, 2),
        recomputed("SharedExpertsEp2", kSharedExperts, "", 2),
        recomputed("SharedExpertsEp2Stop", kSharedExperts, kStops, 2),
        recomputed("DeepSeekEp2", kDeepSeek, "", 2),
        recomputed("DeepSeekEp2Tp2", kDeepSeek, "", 2, 2), recomputed("Predicting", kPredicting)),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace stepcast
