// SPDX-License-Identifier: Apache-2.0
// The executor on GPUs trains as the one on the CPU: the same programs, on the emulated device and
// the stand-in for NCCL.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cmath>
#include <future>
#include <optional>

#include "asynchronous_program.h"
#include "execute/cuda/cuda_device.h"
#include "forecast_peaks.h"
#include "fp8_case.h"
#include "gpt_case.h"
#include "kernels/emulated/runtime.h"
#include "layout/scenario.h"
#include "nccl_world.h"
#include "offloaded_program.h"
#include "predict/memory_replay.h"
#include "program/executable.h"
#include "threaded_training.h"
#include "variant_case.h"

namespace stepcast {
namespace {

using testing::expect_forecast_peaks;
using testing::GptCase;
using testing::Ranks;
using testing::train;
using testing::TrainedRun;
using testing::VariantCase;

constexpr int kSteps = 3;

Ranks on_gpus() {
  return {[](int ranks, const auto& body) {
            emulated::as_each_gpu(ranks, [&](auto world) { body(*world); });
          },
          [] { return std::make_unique<CudaDevice>(cuda::GemmSettings{.tf32 = false}); }};
}

GptCase small() {
  GptCase c = testing::tiny_local();
  c.global_batch = 2;
  return c;
}

struct Case {
  const char* name;
  GptCase gpt;
};

template <class Change>
Case changed(const char* name, Change change) {
  Case out{name, small()};
  out.gpt.cluster = R"("base": "dgx-a100-80g")";
  change(out.gpt);
  return out;
}

class OnGpus : public ::testing::TestWithParam<Case> {};

// fp32 sums in another order; Adam divides by the gradient's own size.
TEST_P(OnGpus, TrainsAsOneRankOfTheCpu) {
  const GptCase& many = GetParam().gpt;
  GptCase one = small();
  one.layers = many.layers;
  one.global_batch = many.global_batch;
  const TrainedRun& reference = testing::trained_once(testing::gpt(one), kSteps);
  const TrainedRun trained = train(testing::gpt(many), kSteps, on_gpus());
  for (std::size_t s = 0; s < kSteps; ++s) {
    EXPECT_NEAR(trained.loss[s] / reference.loss[s], 1, 1e-5) << "step " << s;
    EXPECT_NEAR(trained.gradient_norm[s] / reference.gradient_norm[s], 1, 1e-4) << "step " << s;
  }
  EXPECT_LT(trained.model.relative_error(reference.model), 2e-5);
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Layouts, OnGpus,
    ::testing::Values(changed("OneRank", [](GptCase&) {}),
                      changed("Unfused", [](GptCase& c) { c.attention = "unfused"; }),
                      changed("Recompute", [](GptCase& c) { c.recompute = "full"; }),
                      changed("Tp2", [](GptCase& c) { c.tp = 2; }),
                      changed("Tp2Sequence",
                              [](GptCase& c) {
                                c.tp = 2;
                                c.sequence_parallel = true;
                              }),
                      changed("Dp2Buckets",
                              [](GptCase& c) {
                                c.dp = 2;
                                c.extra_training = R"(, "bucket_elements": 4000)";
                                c.extra_layout = R"(, "overlap": {"grad_reduce": true})";
                              }),
                      changed("Dp2Zero1Megatron",
                              [](GptCase& c) {
                                c.dp = 2;
                                c.zero = 1;
                                c.framework = "megatron";
                                c.extra_layout =
                                    R"(, "overlap": {"grad_reduce": true, "param_gather": true})";
                              }),
                      changed("Dp2Zero2",
                              [](GptCase& c) {
                                c.dp = 2;
                                c.zero = 2;
                              }),
                      changed("Dp2Zero3",
                              [](GptCase& c) {
                                c.dp = 2;
                                c.zero = 3;
                              }),
                      changed("Pp2",
                              [](GptCase& c) {
                                c.pp = 2;
                                c.global_batch = 4;
                              }),
                      changed("Pp2Interleaved",
                              [](GptCase& c) {
                                c.pp = 2;
                                c.layers = 4;
                                c.virtual_stages = 2;
                                c.schedule = "interleaved";
                                c.global_batch = 4;
                              }),
                      changed("Tp2Dp2Pp2",
                              [](GptCase& c) {
                                c.tp = c.dp = c.pp = 2;
                                c.global_batch = 8;
                                c.extra_layout = R"(, "overlap": {"pp": true})";
                              })),
    name_of);

// Weights, gradients and activations of 16 bits, sums in fp32: losses stay near those in fp32.
class InBf16 : public ::testing::TestWithParam<Case> {};

// A bf16 number has a relative error of at most 2^-9. A loss is a mean over all tokens of logits
// that have passed some ten roundings, whose errors have either sign.
constexpr double kLossTolerance = 10 * 0x1p-9;

void expect_near_losses(const TrainedRun& trained, const TrainedRun& reference, std::size_t steps) {
  for (std::size_t s = 0; s < steps; ++s) {
    EXPECT_NEAR(trained.loss[s] / reference.loss[s], 1, kLossTolerance) << "step " << s;
    EXPECT_NEAR(trained.gradient_norm[s] / reference.gradient_norm[s], 1, 0.05) << "step " << s;
  }
}

TEST_P(InBf16, TrainsNearFp32InTheMemoryThatWasForecast) {
  GptCase exact = small();
  const GptCase& rounded = GetParam().gpt;
  exact.global_batch = rounded.global_batch;
  const TrainedRun& reference = testing::trained_once(testing::gpt(exact), kSteps);
  const Scenario scenario = testing::gpt(rounded);
  const TrainedRun trained = train(scenario, kSteps, on_gpus());
  expect_forecast_peaks(scenario, trained);
  expect_near_losses(trained, reference, kSteps);
  // Adam's first steps have the size of the learning rate, whatever the gradient: a gradient of the
  // other sign moves a weight of 0.02 by 2 * 3e-4 a step.
  EXPECT_LT(trained.model.relative_error(reference.model), 0.02);
}

INSTANTIATE_TEST_SUITE_P(Frameworks, InBf16,
                         ::testing::Values(changed("Native",
                                                   [](GptCase& c) { c.precision = "bf16"; }),
                                           changed("NativeFp32Gradients",
                                                   [](GptCase& c) {
                                                     c.precision = "bf16";
                                                     c.extra_training =
                                                         R"(, "grad_precision": "fp32")";
                                                   }),
                                           changed("Megatron",
                                                   [](GptCase& c) {
                                                     c.precision = "bf16";
                                                     c.framework = "megatron";
                                                     c.dp = 2;
                                                     c.zero = 1;
                                                   }),
                                           changed("DeepSpeedZero2",
                                                   [](GptCase& c) {
                                                     c.precision = "bf16";
                                                     c.framework = "deepspeed";
                                                     c.dp = 2;
                                                     c.zero = 2;
                                                   }),
                                           changed("DeepSpeedZero3",
                                                   [](GptCase& c) {
                                                     c.precision = "bf16";
                                                     c.framework = "deepspeed";
                                                     c.dp = 2;
                                                     c.zero = 3;
                                                   }),
                                           changed("Fsdp",
                                                   [](GptCase& c) {
                                                     c.precision = "bf16";
                                                     c.framework = "fsdp";
                                                     c.dp = 2;
                                                     c.zero = 3;
                                                   })),
                         name_of);

// Grouped queries, gates, rotary positions, norms of queries and keys, a table of its own.
std::string gated(const std::string& cluster, const std::string& training) {
  return R"({"stepcast": 1, "model": {"layers": 2, "hidden": 32, "heads": 4, "kv_heads": 2,
             "head_dim": 8, "ffn": 48, "vocab": 64, "max_positions": 16, "mlp": "swiglu",
             "norm": "rmsnorm", "position": "rope", "biases": false, "tied_embeddings": false,
             "vocab_multiple": 1, "dropout": 0},
             "cluster": {"base": ")" +
         cluster + R"(", "gpus": 1},
             "training": {"global_batch": 2, "sequence_length": 16, "framework": "native")" +
         training + R"(}, "layout": {"micro_batch": 1}})";
}

TEST(OnOneGpu, GatedModelsTrainAsOnTheCpu) {
  const Scenario scenario = testing::scenario_from(gated("local", R"(, "precision": "fp32")"));
  const TrainedRun reference = train(scenario, kSteps),
                   trained = train(scenario, kSteps, on_gpus());
  const TrainedRun rounded =
      train(testing::scenario_from(gated("dgx-a100-80g", "")), kSteps, on_gpus());
  for (std::size_t s = 0; s < kSteps; ++s) {
    EXPECT_NEAR(trained.loss[s] / reference.loss[s], 1, 1e-5) << "step " << s;
    EXPECT_NEAR(rounded.loss[s] / reference.loss[s], 1, kLossTolerance) << "step " << s;
  }
  EXPECT_LT(trained.model.relative_error(reference.model), 2e-5);
}

// Experts and prediction modules: the layouts of variant_layers_test.cpp, on GPUs.
struct VariantOnGpus {
  const char* name;
  VariantCase many;
};

VariantCase small_variant() {
  VariantCase c;
  c.layers = 2;
  c.global_batch = 4;
  return c;
}

class Variants : public ::testing::TestWithParam<VariantOnGpus> {
 public:
  static Scenario on(const char* cluster, const VariantCase& c, const std::string& precision) {
    nlohmann::json document = nlohmann::json::parse(testing::text_of(c));
    document["cluster"]["base"] = cluster;
    document["training"]["precision"] = precision;
    return testing::scenario_from(document.dump());
  }
};

TEST_P(Variants, TrainAsOneRankOfTheCpu) {
  const VariantCase& c = GetParam().many;
  VariantCase alone = small_variant();
  alone.model = c.model;
  alone.kv_heads = c.kv_heads;
  alone.global_batch = c.global_batch;
  const Scenario one = testing::variant(alone), many = on("dgx-a100-80g", c, "fp32");
  ExecutorOptions options;
  if (one.model.moe) options.spread = spread_of(many);
  const TrainedRun& reference = testing::trained_once(one, kSteps, options);
  const TrainedRun trained = train(many, kSteps, on_gpus());
  expect_forecast_peaks(many, trained);
  const Scenario narrow = on("dgx-a100-80g", c, "bf16");
  const TrainedRun rounded = train(narrow, kSteps, on_gpus());
  expect_forecast_peaks(narrow, rounded);
  for (std::size_t s = 0; s < kSteps; ++s) {
    EXPECT_NEAR(trained.loss[s] / reference.loss[s], 1, 1e-5) << "step " << s;
    EXPECT_NEAR(trained.gradient_norm[s] / reference.gradient_norm[s], 1, 1e-4) << "step " << s;
    EXPECT_NEAR(rounded.loss[s] / reference.loss[s], 1, kLossTolerance) << "step " << s;
    EXPECT_NEAR(rounded.gradient_norm[s] / reference.gradient_norm[s], 1, 0.05) << "step " << s;
  }
  EXPECT_LT(trained.model.relative_error(reference.model), 2e-5);
}

template <class Change>
VariantOnGpus variant_on_gpus(const char* name, const char* model, Change change) {
  VariantOnGpus out{name, small_variant()};
  out.many.model = model;
  change(out.many);
  return out;
}

constexpr const char* kExperts = R"(,"moe":{"experts":8,"top_k":2,"ffn":24})";
constexpr const char* kSharedExperts =
    R"(,"moe":{"experts":4,"top_k":2,"ffn":24,"shared_ffn":16,"dense_layers":1})";
constexpr const char* kCapacity =
    R"(,"moe":{"experts":8,"top_k":3,"ffn":16,"capacity_factor":1.25,"layer_every":2})";
constexpr const char* kUneven = R"(,"moe":{"experts":8,"top_k":2,"ffn":24,"imbalance":1.5})";
constexpr const char* kBiased =
    R"(,"mlp_bias":true,"moe":{"experts":8,"top_k":2,"ffn":24,"imbalance":1.5,"router_bias":true})";
constexpr const char* kSinks = R"(,"attention_sinks":1)";
constexpr const char* kPredicting = R"(,"mtp_layers":2,"tied_embeddings":false)";

void alone(VariantCase&) {}
void dp2(VariantCase& c) { c.dp = 2; }
void ep2(VariantCase& c) {
  c.dp = c.ep = 2;
  c.zero = 1;
  c.experts = true;
}
void ep2_over_tp2(VariantCase& c) {
  ep2(c);
  c.tp = 2;
  c.layout = R"(,"sequence_parallel":true)";
}
void tp2(VariantCase& c) {
  c.tp = 2;
  c.layout = R"(,"sequence_parallel":true)";
}
void etp2(VariantCase& c) {
  ep2_over_tp2(c);
  c.etp = 2;
}
void ep2_beside(VariantCase& c) {
  ep2(c);
  c.framework = "megatron";
  c.layout = R"(,"overlap":{"ep":true})";
}

void by_operation(VariantCase& c) {
  c.framework = "fsdp";
  c.kv_heads = 2;
  c.dp = 2;
  c.zero = 3;
  c.micro_batch = 2;
  c.layout = R"(,"recompute":{"mode":"selective","modules":["torchtitan_op"]})";
}
void ep2_by_operation(VariantCase& c) {
  by_operation(c);
  c.ep = 2;
  c.experts = true;
}

void context(VariantCase& c, int cp, const char* method) {
  c.kv_heads = 2;
  c.global_batch = 2;
  c.cp = cp;
  c.layout = fmt::format(R"(,"cp_method":"{}")", method);
}
void ring4(VariantCase& c) { context(c, 4, "ring"); }
void gather2(VariantCase& c) { context(c, 2, "all_gather"); }
void hierarchical4(VariantCase& c) { context(c, 4, "hierarchical"); }
void fsdp_ring2(VariantCase& c) {
  context(c, 2, "ring");
  c.framework = "fsdp";
  c.zero = 3;
}
void exchange2(VariantCase& c) { context(c, 2, "all_to_all"); }

INSTANTIATE_TEST_SUITE_P(Context, Variants,
                         ::testing::Values(variant_on_gpus("Ring4", "", ring4),
                                           variant_on_gpus("FsdpRing2", "", fsdp_ring2),
                                           variant_on_gpus("Hierarchical4", "", hierarchical4),
                                           variant_on_gpus("Gather2", "", gather2),
                                           variant_on_gpus("Exchange2", "", exchange2)),
                         [](const auto& on) { return std::string(on.param.name); });

INSTANTIATE_TEST_SUITE_P(OnGpus, Variants,
                         ::testing::Values(variant_on_gpus("Experts", kExperts, alone),
                                           variant_on_gpus("ExpertsDp2", kExperts, dp2),
                                           variant_on_gpus("ExpertsEp2", kExperts, ep2),
                                           variant_on_gpus("ExpertsEp2Tp2", kExperts, ep2_over_tp2),
                                           variant_on_gpus("ExpertsBeside", kExperts, ep2_beside),
                                           variant_on_gpus("SharedEp2", kSharedExperts, ep2),
                                           variant_on_gpus("CapacityEp2", kCapacity, ep2),
                                           variant_on_gpus("UnevenEp2", kUneven, ep2),
                                           variant_on_gpus("BiasedEp2", kBiased, ep2),
                                           variant_on_gpus("BiasedEp2Etp2", kBiased, etp2),
                                           variant_on_gpus("ByOperation", kSinks, by_operation),
                                           variant_on_gpus("SharedEp2ByOperation", kSharedExperts,
                                                           ep2_by_operation),
                                           variant_on_gpus("SinksTp2", kSinks, tp2),
                                           variant_on_gpus("SinksExchange2", kSinks, exchange2),
                                           variant_on_gpus("PredictingTp2", kPredicting, tp2),
                                           variant_on_gpus("Predicting", kPredicting, alone)),
                         [](const auto& on) { return std::string(on.param.name); });

// Products in fp8 between activations in bf16: as on the processor, which has fp32 between them.
struct Fp8OnGpus {
  const char* name;
  const char* recipe;
  void (*change)(VariantCase& c);
};
class InFp8OnGpus : public ::testing::TestWithParam<Fp8OnGpus> {};

TEST_P(InFp8OnGpus, TrainsAsOneRankOfTheCpu) {
  constexpr std::size_t kFewSteps = 2;
  testing::Fp8Case one{GetParam().recipe, small_variant()};
  one.layout.global_batch = 2;
  testing::Fp8Case many = one;
  many.cluster = "dgx-h100";
  GetParam().change(many.layout);
  const Scenario scenario = testing::fp8_scenario(many);
  EXPECT_TRUE(check_executable(scenario, Backend::kCuda).empty());
  const TrainedRun& reference = testing::trained_once(testing::fp8_scenario(one), kFewSteps);
  const TrainedRun trained = train(scenario, kFewSteps, on_gpus());
  expect_forecast_peaks(scenario, trained);
  expect_near_losses(trained, reference, kFewSteps);
  EXPECT_LT(trained.model.relative_error(reference.model), 0.02);
}

void fsdp2(VariantCase& c) { c.dp = 2, c.zero = 3, c.framework = "fsdp"; }
void megatron4(VariantCase& c) {
  c.tp = c.dp = 2, c.zero = 1;
  c.framework = "megatron";
  c.layout = R"(,"sequence_parallel":true)";
}

INSTANTIATE_TEST_SUITE_P(OnGpus, InFp8OnGpus,
                         ::testing::Values(Fp8OnGpus{"Fsdp", "current", fsdp2},
                                           Fp8OnGpus{"Megatron", "current", megatron4},
                                           Fp8OnGpus{"MegatronDelayed", "delayed", megatron4}),
                         [](const auto& on) { return std::string(on.param.name); });

// Offloaded activations are the same after their stay in host memory.
TEST(OnOneGpu, OffloadedActivationsComeBack) {
  GptCase c = small();
  c.cluster = R"("base": "dgx-a100-80g")";
  c.schedule = "gpipe";
  const Scenario scenario = testing::gpt(c);
  const Program moved = testing::offloaded(lower(scenario));
  const TrainedRun before = train(scenario, kSteps, on_gpus());
  const TrainedRun after = train(scenario, moved, kSteps, on_gpus());
  EXPECT_EQ(after.loss, before.loss);
  EXPECT_EQ(after.model.relative_error(before.model), 0);
  const MemoryPeak forecast = replay_memory(moved, moved.roles.front());
  EXPECT_EQ(total(after.peaks.front()), total(forecast.parts));
  EXPECT_EQ(total(after.host_peaks.front()), forecast.host);
}

// The host goes on while a copy waits for what its stream holds.
TEST(CudaDevice, CopiesWithoutTheHost) {
  CudaDevice device(cuda::GemmSettings{.tf32 = false});
  const std::vector<std::int32_t> value{7};
  void* const there = device.allocate(sizeof(std::int32_t), Stream::kCompute);
  auto* const here = static_cast<std::int32_t*>(device.allocate_host(sizeof(std::int32_t)));
  device.upload(there, value.data(), sizeof(std::int32_t));
  *here = 0;
  std::optional<emulated::HeldStream> held;
  Transfer transfer;
  transfer.starts.emplace_back([&](DeviceStream after) -> Pending {
    held.emplace(static_cast<cudaStream_t>(after));
    device.copy(here, there, sizeof(std::int32_t), CopyDirection::kToHost, after);
    return nullptr;
  });
  auto posted = std::async(std::launch::async,
                           [&] { return device.post(Stream::kCopyOut, std::move(transfer)); });
  EXPECT_EQ(posted.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  EXPECT_EQ(*here, 0);
  held.reset();
  device.wait({posted.get()});
  EXPECT_EQ(*here, 7);
  device.release_host(here);
  device.release(there, sizeof(std::int32_t));
}

// Collectives on streams of their own inside the blocks, in the memory that is forecast for them.
TEST(OnTwoGpus, CollectivesBesideKernelsTrainAsTheList) {
  for (const bool sequence_parallel : {false, true}) {
    GptCase c = small();
    c.cluster = R"("base": "dgx-a100-80g")";
    c.tp = 2;
    c.sequence_parallel = sequence_parallel;
    const Scenario scenario = testing::gpt(c);
    const Program listed = lower(scenario), beside = testing::asynchronous(listed);
    const TrainedRun before = train(scenario, listed, kSteps, on_gpus());
    const TrainedRun after = train(scenario, beside, kSteps, on_gpus());
    EXPECT_EQ(after.loss, before.loss);
    EXPECT_EQ(after.model.relative_error(before.model), 0);
    const ByteCount more = total(replay_memory(beside, beside.roles.front()).parts) -
                           total(replay_memory(listed, listed.roles.front()).parts);
    EXPECT_EQ(total(after.peaks.front()) - total(before.peaks.front()), more);
  }
}

// Numbers stand in for those of other ranks, not what memory held: NaNs would spread.
TEST(OnOneGpu, OneRankOfALargerLayoutRunsAlone) {
  GptCase c = changed("", [](GptCase& of) {
                of.precision = "bf16";
                of.tp = of.dp = of.pp = 2;
                of.zero = 1;
                of.framework = "megatron";
                of.sequence_parallel = true;
                of.global_batch = 8;
              }).gpt;
  GptCase sharded = changed("", [](GptCase& of) {
                      of.precision = "bf16";
                      of.dp = 4;
                      of.zero = 3;
                      of.framework = "fsdp";
                      of.global_batch = 4;
                    }).gpt;
  const VariantOnGpus experts = variant_on_gpus("", kExperts, ep2_over_tp2);
  for (const Scenario& scenario : {testing::gpt(c), testing::gpt(sharded),
                                   Variants::on("dgx-a100-80g", experts.many, "bf16")}) {
    const Program program = lower(scenario);
    const RankGrid grid(scenario.layout);
    for (std::int32_t r = 0; r < grid.size(); ++r) {
      RoleRunner runner(scenario, program, grid, RankId(r), nullptr, on_gpus().device(), {});
      for (int s = 0; s < 2; ++s) {
        const double norm = runner.step().gradient_norm;
        EXPECT_TRUE(std::isfinite(norm) && norm > 0) << "rank " << r << ", step " << s;
      }
    }
  }
}

}  // namespace
}  // namespace stepcast
