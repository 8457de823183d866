// SPDX-License-Identifier: Apache-2.0
// Layers that are no plain attention and MLP: every layout trains the same model as one rank, and
// the memory that it takes is that of the forecast.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "forecast_peaks.h"
#include "threaded_training.h"
#include "variant_case.h"

namespace stepcast {
namespace {

using testing::expect_forecast_peaks;
using testing::train;
using testing::TrainedRun;
using testing::variant;
using testing::VariantCase;

constexpr int kVariantSteps = 3;
constexpr double kTolerance = 1e-5;

struct Tested {
  std::string name;
  VariantCase one, many;
};

void PrintTo(const Tested& tested, std::ostream* out) { *out << tested.name; }

class VariantTrainsLikeOneRank : public ::testing::TestWithParam<Tested> {};

TEST_P(VariantTrainsLikeOneRank, AndTakesTheMemoryOfTheForecast) {
  const Scenario one = variant(GetParam().one), many = variant(GetParam().many);
  ExecutorOptions options;
  if (one.model.moe) options.spread = spread_of(many);
  const TrainedRun& reference = testing::trained_once(one, kVariantSteps, options);
  const TrainedRun parallel = train(many, kVariantSteps);
  for (std::size_t s = 0; s < kVariantSteps; ++s) {
    EXPECT_NEAR(parallel.loss[s] / reference.loss[s], 1, kTolerance) << "step " << s;
    EXPECT_NEAR(parallel.gradient_norm[s] / reference.gradient_norm[s], 1, 1e-4) << "step " << s;
  }
  EXPECT_EQ(parallel.model.elements(), reference.model.elements());
  EXPECT_LT(parallel.model.relative_error(reference.model), kTolerance);
  expect_forecast_peaks(one, reference);
  expect_forecast_peaks(many, parallel);
}

template <class Change>
Tested tested(const std::string& name, const char* model, Change change, int kv_heads = 4) {
  Tested out{name, {}, {}};
  out.one.model = model;
  out.one.kv_heads = kv_heads;
  out.many = out.one;
  change(out.many);
  return out;
}

const char* const kWindows = R"(,"attention_window":5,"attention_window_every":2)";
const char* const kChunks = R"(,"attention_window":8,"attention_window_every":4,)"
                            R"("attention_chunked":true)";
const char* const kLatent = R"(,"mla":{"q_lora_rank":24,"kv_lora_rank":16,"qk_nope_head_dim":6,)"
                            R"("qk_rope_head_dim":4,"v_head_dim":8})";
const char* const kWholeQueries = R"(,"mla":{"kv_lora_rank":16,"qk_nope_head_dim":6,)"
                                  R"("qk_rope_head_dim":4,"v_head_dim":12})";

void tp2(VariantCase& c) { c.tp = 2; }
void tp2_sequence(VariantCase& c) {
  c.tp = 2;
  c.layout = R"(,"sequence_parallel":true)";
}
void selective(VariantCase& c) {
  c.micro_batch = 2;
  c.layout = R"(,"recompute":"selective")";
}
void full(VariantCase& c) { c.layout = R"(,"recompute":"full")"; }
void pp2_zb(VariantCase& c) {
  c.pp = 2;
  c.layout = R"(,"schedule":"zb-h1")";
}
void dp2_zero3(VariantCase& c) {
  c.dp = 2;
  c.zero = 3;
}
void dp2_fsdp(VariantCase& c) {
  dp2_zero3(c);
  c.framework = "fsdp";
}
void megatron(VariantCase& c) {
  c.framework = "megatron";
  c.tp = 2;
  c.dp = 2;
  c.zero = 1;
  c.layout = R"(,"sequence_parallel":true)";
}

INSTANTIATE_TEST_SUITE_P(
    Attention, VariantTrainsLikeOneRank,
    ::testing::Values(
        tested("WindowsTp2", kWindows, tp2), tested("WindowsSelective", kWindows, selective),
        tested("WindowsPp2ZbH1", kWindows, pp2_zb), tested("ChunksFull", kChunks, full),
        tested("ChunksDp2Zero3", kChunks, dp2_zero3), tested("LatentTp2", kLatent, tp2),
        tested("LatentTp2Sequence", kLatent, tp2_sequence),
        tested("LatentSelective", kLatent, selective), tested("LatentFull", kLatent, full),
        tested("LatentPp2ZbH1", kLatent, pp2_zb), tested("LatentDp2Zero3", kLatent, dp2_zero3),
        tested("LatentMegatron", kLatent, megatron),
        tested("NormedHeadsFsdp", R"(,"query_key_norm":true)", dp2_fsdp, 2),
        tested("WholeQueriesTp2Sequence", kWholeQueries, tp2_sequence),
        tested("WholeQueriesMegatron", kWholeQueries, megatron)),
    [](const auto& tested) { return tested.param.name; });

const char* const kSinks = R"(,"attention_sinks":1)";
const char* const kSinksAndWindows =
    R"(,"attention_sinks":1,"attention_window":5,"attention_window_every":2)";

void exchange2(VariantCase& c) {
  c.cp = 2;
  c.layout = R"(,"cp_method":"all_to_all")";
}
void exchange2_zero3(VariantCase& c) {
  exchange2(c);
  c.zero = 3;
}

INSTANTIATE_TEST_SUITE_P(
    Sinks, VariantTrainsLikeOneRank,
    ::testing::Values(tested("Tp2", kSinks, tp2), tested("Tp2Windows", kSinksAndWindows, tp2),
                      tested("Selective", kSinksAndWindows, selective),
                      tested("Full", kSinks, full), tested("Pp2ZbH1", kSinksAndWindows, pp2_zb),
                      tested("Dp2Zero3", kSinks, dp2_zero3), tested("Megatron", kSinks, megatron),
                      tested("Exchange2", kSinksAndWindows, exchange2),
                      tested("Exchange2Zero3", kSinks, exchange2_zero3)),
    [](const auto& tested) { return tested.param.name; });

// Sequences that ranks share, alone and beside other cuts.
void cut(VariantCase& c, int cp, const char* method) {
  c.cp = cp;
  c.layout = fmt::format(R"(,"cp_method":"{}"{})", method, c.layout);
}
void ring2(VariantCase& c) { cut(c, 2, "ring"); }
void ring4_batches(VariantCase& c) {
  c.micro_batch = 2;
  cut(c, 4, "ring");
}
void ring2_everything(VariantCase& c) {
  megatron(c);
  c.pp = 2;
  c.dp = 1;
  cut(c, 2, "ring");
}
void ring2_zero3(VariantCase& c) {
  dp2_zero3(c);
  cut(c, 2, "ring");
}
// PyTorch's ring passes on keys and values of every query head.
void ring4_fsdp(VariantCase& c) {
  c.framework = "fsdp";
  c.zero = 3;
  cut(c, 4, "ring");
}
void gather2_batches(VariantCase& c) {
  c.micro_batch = 2;
  cut(c, 2, "all_gather");
}
void gather4_tp2(VariantCase& c) {
  tp2_sequence(c);
  cut(c, 4, "all_gather");
}
void exchange2_batches(VariantCase& c) {
  c.micro_batch = 2;
  c.dp = 2;
  c.zero = 1;
  cut(c, 2, "all_to_all");
}
void exchange2_selective(VariantCase& c) {
  selective(c);
  cut(c, 2, "all_to_all");
}
// Two ranks exchange heads, as many as keys have, and a ring joins such pairs.
void hierarchical4_batches(VariantCase& c) {
  c.micro_batch = 2;
  cut(c, 4, "hierarchical");
}
void hierarchical4_tp2(VariantCase& c) {
  tp2_sequence(c);
  cut(c, 4, "hierarchical");
}
void exchange4(VariantCase& c) { cut(c, 4, "all_to_all"); }

INSTANTIATE_TEST_SUITE_P(Context, VariantTrainsLikeOneRank,
                         ::testing::Values(tested("Ring2", "", ring2, 2),
                                           tested("Ring4Batches", "", ring4_batches, 2),
                                           tested("Ring2Tp2Pp2", "", ring2_everything, 2),
                                           tested("Ring2Dp2Zero3", "", ring2_zero3),
                                           tested("Ring4Fsdp", "", ring4_fsdp, 2),
                                           tested("Gather2Batches", "", gather2_batches, 2),
                                           tested("Gather4Tp2", "", gather4_tp2, 2),
                                           tested("Exchange2Batches", "", exchange2_batches, 2),
                                           tested("Exchange4", "", exchange4),
                                           tested("Hierarchical4", "", hierarchical4_batches, 2),
                                           tested("Hierarchical4Tp2", "", hierarchical4_tp2),
                                           tested("ExchangeWindows", kWindows, exchange2_selective),
                                           tested("LatentRing4", kLatent, ring4_batches),
                                           tested("LatentGather2", kLatent, gather2_batches),
                                           tested("LatentExchange2", kLatent, exchange2_batches)),
                         [](const auto& tested) { return tested.param.name; });

const char* const kExperts = R"(,"moe":{"experts":8,"top_k":2,"ffn":24})";
const char* const kSharedExperts =
    R"(,"moe":{"experts":4,"top_k":2,"ffn":24,"shared_ffn":16,"dense_layers":1})";
const char* const kCapacity =
    R"(,"moe":{"experts":8,"top_k":3,"ffn":16,"capacity_factor":1.25,"layer_every":2})";
const char* const kUneven = R"(,"moe":{"experts":8,"top_k":2,"ffn":24,"imbalance":1.5})";

void dp2(VariantCase& c) { c.dp = 2; }
void one_etp(VariantCase& c) { c.experts = true; }
void tp2_experts(VariantCase& c) {
  tp2_sequence(c);
  one_etp(c);
}
void tp2_zero1(VariantCase& c) {
  tp2_experts(c);
  c.dp = 2;
  c.zero = 1;
}

INSTANTIATE_TEST_SUITE_P(Experts, VariantTrainsLikeOneRank,
                         ::testing::Values(tested("Dp2", kExperts, dp2),
                                           tested("Dp2Zero3", kExperts, dp2_zero3),
                                           tested("Selective", kExperts, selective),
                                           tested("Full", kExperts, full),
                                           tested("Pp2ZbH1", kExperts, pp2_zb),
                                           tested("Tp2Sequence", kExperts, tp2_experts),
                                           tested("Tp2Dp2Zero1", kExperts, tp2_zero1),
                                           tested("SharedDp2", kSharedExperts, dp2),
                                           tested("SharedTp2Sequence", kSharedExperts, tp2_experts),
                                           tested("CapacityDp2", kCapacity, dp2),
                                           tested("CapacityTp2Sequence", kCapacity, tp2_experts),
                                           tested("UnevenDp2", kUneven, dp2)),
                         [](const auto& tested) { return tested.param.name; });

void ep2(VariantCase& c) {
  c.dp = c.ep = 2;
  c.zero = 1;
  c.experts = true;
}
void ep4(VariantCase& c) {
  c.dp = c.ep = 4;
  c.zero = 1;
  c.experts = true;
}
void ep2_of_dp4(VariantCase& c) {
  ep4(c);
  c.ep = 2;
}
void ep4_over_tp2(VariantCase& c) {
  ep4(c);
  c.dp = c.tp = 2;
  c.layout = R"(,"sequence_parallel":true)";
}
void ep2_full(VariantCase& c) {
  ep2(c);
  full(c);
}
void ep2_beside(VariantCase& c) {
  ep2(c);
  c.framework = "megatron";
  c.layout = R"(,"overlap":{"ep":true})";
}
void ep2_pp2(VariantCase& c) {
  ep2(c);
  c.pp = 2;
}
void ep2_megatron(VariantCase& c) {
  ep4_over_tp2(c);
  c.ep = 2;
  c.framework = "megatron";
}

void ep2_zero3(VariantCase& c) {
  ep2_of_dp4(c);
  c.zero = 3;
}
void ep4_alone_zero3(VariantCase& c) {
  ep4(c);
  c.zero = 3;
}
void fsdp(VariantCase& c) { c.framework = "fsdp"; }
void ep2_over_tp2_fsdp(VariantCase& c) {
  ep4_over_tp2(c);
  fsdp(c);
  c.ep = 2;
  c.zero = 3;
}
void ep2_over_tp2_zero3(VariantCase& c) {
  ep2_over_tp2_fsdp(c);
  c.framework = "native";
}
void ep2_pp2_fsdp(VariantCase& c) {
  ep2_pp2(c);
  fsdp(c);
  c.zero = 2;
}
void ep2_in_copies_fsdp(VariantCase& c) {
  ep2_of_dp4(c);
  fsdp(c);
  c.zero = 3;
  c.layout = R"(,"shard_group":2)";
}
void ep2_pp2_zb_zero3(VariantCase& c) {
  ep2_pp2(c);
  c.zero = 3;
  c.layout = R"(,"schedule":"zb-h1")";
}

INSTANTIATE_TEST_SUITE_P(ShardedExperts, VariantTrainsLikeOneRank,
                         ::testing::Values(tested("Ep2OfDp4Zero3", kExperts, ep2_zero3),
                                           tested("Ep4Zero3", kExperts, ep4_alone_zero3),
                                           tested("SharedEp2Zero3", kSharedExperts, ep2_zero3),
                                           tested("Ep2OverTp2Zero3", kExperts, ep2_over_tp2_zero3),
                                           tested("Ep2OverTp2Fsdp", kExperts, ep2_over_tp2_fsdp),
                                           tested("Ep2Pp2Fsdp", kExperts, ep2_pp2_fsdp),
                                           tested("Ep2InCopiesFsdp", kExperts, ep2_in_copies_fsdp),
                                           tested("Ep2Pp2ZbZero3", kExperts, ep2_pp2_zb_zero3)),
                         [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(
    ExpertParallel, VariantTrainsLikeOneRank,
    ::testing::Values(
        tested("Ep2", kExperts, ep2), tested("Ep4", kExperts, ep4),
        tested("Ep2OfDp4", kExperts, ep2_of_dp4), tested("Ep4OverTp2", kExperts, ep4_over_tp2),
        tested("Ep2Full", kExperts, ep2_full), tested("Ep2Beside", kExperts, ep2_beside),
        tested("Ep2Pp2", kExperts, ep2_pp2), tested("Ep2Megatron", kExperts, ep2_megatron),
        tested("SharedEp2", kSharedExperts, ep2), tested("CapacityEp4", kCapacity, ep4),
        tested("UnevenEp2", kUneven, ep2), tested("UnevenEp4OverTp2", kUneven, ep4_over_tp2)),
    [](const auto& tested) { return tested.param.name; });

const char* const kBiased = R"(,"mlp_bias":true,"moe":{"experts":8,"top_k":2,"ffn":24})";
const char* const kBiasedCapacity =
    R"(,"mlp_bias":true,"moe":{"experts":8,"top_k":3,"ffn":16,"capacity_factor":1.25})";

// Before 2026-08 Megatron adds the biases of outputs in steps of their own.
void ep2_megatron_in_steps(VariantCase& c) {
  ep2_megatron(c);
  c.training = R"(,"release":"2026-07")";
}

INSTANTIATE_TEST_SUITE_P(
    BiasedExperts, VariantTrainsLikeOneRank,
    ::testing::Values(tested("Dp2", kBiased, dp2), tested("Selective", kBiased, selective),
                      tested("Pp2ZbH1", kBiased, pp2_zb), tested("Tp2Dp2Zero1", kBiased, tp2_zero1),
                      tested("Ep2", kBiased, ep2), tested("Ep4OverTp2", kBiased, ep4_over_tp2),
                      tested("Ep2Megatron", kBiased, ep2_megatron),
                      tested("Ep2InSteps", kBiased, ep2_megatron_in_steps),
                      tested("Ep2Zero3", kBiased, ep2_zero3),
                      tested("CapacityEp4", kBiasedCapacity, ep4)),
    [](const auto& tested) { return tested.param.name; });

const char* const kBalanced =
    R"(,"moe":{"experts":8,"top_k":2,"ffn":24,"imbalance":1.5,"router_bias":true})";

INSTANTIATE_TEST_SUITE_P(BalancedExperts, VariantTrainsLikeOneRank,
                         ::testing::Values(tested("Dp2", kBalanced, dp2),
                                           tested("Selective", kBalanced, selective),
                                           tested("Full", kBalanced, full),
                                           tested("Pp2ZbH1", kBalanced, pp2_zb),
                                           tested("Tp2Dp2Zero1", kBalanced, tp2_zero1),
                                           tested("Ep4OverTp2", kBalanced, ep4_over_tp2),
                                           tested("Ep2Megatron", kBalanced, ep2_megatron),
                                           tested("Ep2Zero3", kBalanced, ep2_zero3),
                                           tested("Ep2Pp2ZbZero3", kBalanced, ep2_pp2_zb_zero3)),
                         [](const auto& tested) { return tested.param.name; });

// Experts that ranks share: those of tensor parallelism, or of data parallelism.
void etp2_of_tp2(VariantCase& c) {
  tp2_experts(c);
  c.etp = 2;
}
void etp2_of_tp2_dp2(VariantCase& c) {
  etp2_of_tp2(c);
  c.dp = 2;
  c.zero = 1;
}
void etp2_of_dp4(VariantCase& c) {
  ep4(c);
  c.ep = 1;
  c.etp = 2;
}
void ep2_etp2(VariantCase& c) {
  etp2_of_dp4(c);
  c.ep = 2;
}
void ep2_etp2_over_tp2(VariantCase& c) {
  etp2_of_tp2_dp2(c);
  c.ep = 2;
}
void ep2_etp2_of_8(VariantCase& c) {
  ep2_etp2_over_tp2(c);
  c.dp = 4;
  c.framework = "megatron";
}
void ep2_etp2_pp2(VariantCase& c) {
  ep2_etp2_over_tp2(c);
  c.pp = 2;
}
void ep2_etp2_zero3(VariantCase& c) {
  ep2_etp2(c);
  c.zero = 3;
}

INSTANTIATE_TEST_SUITE_P(SharedByRanks, VariantTrainsLikeOneRank,
                         ::testing::Values(tested("Etp2OfTp2", kExperts, etp2_of_tp2),
                                           tested("Etp2OfTp2Dp2", kExperts, etp2_of_tp2_dp2),
                                           tested("Etp2OfDp4", kExperts, etp2_of_dp4),
                                           tested("Ep2Etp2", kExperts, ep2_etp2),
                                           tested("Ep2Etp2OverTp2", kExperts, ep2_etp2_over_tp2),
                                           tested("UnevenEp2Etp2", kUneven, ep2_etp2),
                                           tested("Ep2Etp2Of8", kUneven, ep2_etp2_of_8),
                                           tested("SharedEtp2", kSharedExperts, etp2_of_tp2),
                                           tested("CapacityEp2Etp2", kCapacity, ep2_etp2_over_tp2),
                                           tested("BiasedEtp2OfTp2", kBiased, etp2_of_tp2),
                                           tested("BiasedEp2Etp2", kBiased, ep2_etp2_over_tp2),
                                           tested("BalancedEp2Etp2", kBalanced, ep2_etp2),
                                           tested("Ep2Etp2Pp2", kExperts, ep2_etp2_pp2),
                                           tested("Ep2Etp2Zero3", kExperts, ep2_etp2_zero3)),
                         [](const auto& tested) { return tested.param.name; });

const char* const kPredicting = R"(,"mtp_layers":2,"tied_embeddings":false)";
const char* const kTiedPredicting = R"(,"mtp_layers":1,"tied_embeddings":true)";
const char* const kPredictingExperts =
    R"(,"mtp_layers":2,"tied_embeddings":false,"moe":{"experts":8,"top_k":2,"ffn":24})";

void pp2(VariantCase& c) { c.pp = 2; }
void tp2_batches(VariantCase& c) {
  tp2_sequence(c);
  c.micro_batch = 2;
}
void tp2_pp2_zb(VariantCase& c) {
  pp2_zb(c);
  c.tp = 2;
}
void megatron_pp2(VariantCase& c) {
  c.framework = "megatron";
  c.pp = c.dp = 2;
  c.zero = 1;
}

INSTANTIATE_TEST_SUITE_P(Predictions, VariantTrainsLikeOneRank,
                         ::testing::Values(tested("Dp2", kPredicting, dp2),
                                           tested("Selective", kPredicting, selective),
                                           tested("Full", kPredicting, full),
                                           tested("Pp2", kPredicting, pp2),
                                           tested("Pp2ZbH1", kPredicting, pp2_zb),
                                           tested("Dp2Zero3", kPredicting, dp2_zero3),
                                           tested("MegatronPp2", kPredicting, megatron_pp2),
                                           tested("TiedPp2", kTiedPredicting, pp2),
                                           tested("TiedDp2Zero3", kTiedPredicting, dp2_zero3),
                                           tested("TiedMegatronPp2", kTiedPredicting, megatron_pp2),
                                           tested("Tp2", kPredicting, tp2),
                                           tested("Tp2Sequence", kPredicting, tp2_sequence),
                                           tested("Tp2Batches", kPredicting, tp2_batches),
                                           tested("Megatron", kTiedPredicting, megatron),
                                           tested("Tp2Pp2ZbH1", kTiedPredicting, tp2_pp2_zb),
                                           tested("ExpertsTp2", kPredictingExperts, tp2_zero1),
                                           tested("ExpertsEp2", kPredictingExperts, ep2),
                                           tested("ExpertsEp2Pp2", kPredictingExperts, ep2_pp2)),
                         [](const auto& tested) { return tested.param.name; });

template <class Change>
Tested recomputing(const std::string& name, const char* model, const std::string& modules,
                   Change change) {
  Tested out = tested(name, model, change);
  out.many.layout += R"(,"recompute":{"mode":"selective","modules":[)" + modules + "]}";
  return out;
}

INSTANTIATE_TEST_SUITE_P(
    RecomputedModules, VariantTrainsLikeOneRank,
    ::testing::Values(
        recomputing("Dense", "", R"("layernorm","mlp_act")", dp2),
        recomputing("DenseMlpTp2", "", R"("layernorm","mlp","core_attention")", tp2_sequence),
        recomputing("LatentQueries", kLatent, R"("mla_up_proj","layernorm")", tp2_sequence),
        recomputing("WholeLatentQueries", kWholeQueries, R"("mla_up_proj","core_attention")", dp2),
        recomputing("ExpertActivation", kSharedExperts, R"("moe_act","shared_experts")", ep2),
        recomputing("WholeExperts", kSharedExperts, R"("moe","layernorm")", ep2),
        recomputing("WholeExpertsOverTp2", kUneven, R"("moe")", ep4_over_tp2),
        recomputing("ExpertsPp2ZbH1", kExperts, R"("moe_act","layernorm")", pp2_zb)),
    [](const auto& tested) { return tested.param.name; });

// A model learns with its router's own choice too, which another layout follows.
TEST(Router, ChoosesByScores) {
  VariantCase c;
  c.model = kExperts;
  ExecutorOptions options;
  options.by_scores = true;
  const TrainedRun reference = train(variant(c), 2, testing::on_host(), options);
  c.dp = 2;
  const TrainedRun parallel = train(variant(c), 2, testing::on_host(), options);
  EXPECT_NEAR(parallel.loss[1] / reference.loss[1], 1, kTolerance);
  EXPECT_LT(parallel.model.relative_error(reference.model), kTolerance);
  EXPECT_NE(train(variant(c), 2).loss[1], parallel.loss[1]);
  expect_forecast_peaks(variant(c), parallel);
}

// An update moves a bias by a thousandth, down where more tokens than the mean have chosen the
// expert. With 4 experts on 2 ranks, those of the fullest one have 3/2 of the mean of all.
TEST(Router, BiasGoesAgainstTheLoad) {
  VariantCase c;
  c.layers = 1;
  c.model = R"(,"moe":{"experts":4,"top_k":2,"ffn":24,"imbalance":1.5,"router_bias":true})";
  ep2(c);
  const ExpertSpread uneven = spread_of(variant(c));
  c = {};
  c.layers = 1;
  c.model = R"(,"moe":{"experts":4,"top_k":2,"ffn":24,"router_bias":true})";
  const Scenario scenario = variant(c);
  const Program program = lower(scenario);
  const RankGrid grid(scenario.layout);
  ExecutorOptions options;
  options.spread = uneven;
  RoleRunner runner(scenario, program, grid, RankId(0), nullptr, std::make_unique<HostDevice>(),
                    options);
  for (int s = 0; s < 3; ++s) runner.step();
  const auto bias = std::ranges::find_if(
      runner.parameters(), [](const PlacedParameter& one) { return one.parameter->balances; });
  ASSERT_NE(bias, runner.parameters().end());
  std::vector<float> moved(4);
  std::copy_n(runner.state().parameters(bias->range.begin).as<float>(), 4, moved.begin());
  std::ranges::sort(moved);
  for (std::size_t i = 0; i < moved.size(); ++i) {
    EXPECT_NEAR(moved[i], i < 2 ? -3e-3 : 3e-3, 1e-8) << i;
  }
}

// A query gives the same whatever lies outside its window: with a window of one token every token
// attends to itself, so that the losses of all windows differ.
TEST(Windows, ChangeWhatIsLearned) {
  VariantCase c;
  c.layers = 1;
  const auto loss = [&](const std::string& model) {
    c.model = model;
    return train(variant(c), 2).loss.back();
  };
  const double whole = loss(""), two = loss(R"(,"attention_window":2)");
  EXPECT_NE(whole, two);
  EXPECT_NE(two, loss(R"(,"attention_window":3)"));
  EXPECT_EQ(whole, loss(R"(,"attention_window":32)"));
}

}  // namespace
}  // namespace stepcast
