// SPDX-License-Identifier: Apache-2.0
// States in host memory train the same model as those of one rank that keeps all on its device, and
// both memories hold what is forecast.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/each.h"
#include "forecast_peaks.h"
#include "threaded_training.h"
#include "variant_case.h"

namespace stepcast::offloading {
namespace {

using testing::GptCase;
using testing::train;
using testing::TrainedRun;

constexpr int kSteps = 3;
constexpr double kTolerance = 1e-5;

void expect_same(const TrainedRun& run, const TrainedRun& reference) {
  for (std::size_t s = 0; s < kSteps; ++s) {
    EXPECT_NEAR(run.loss[s] / reference.loss[s], 1, kTolerance) << "step " << s;
    if (reference.gradient_norm[s] == 0) continue;  // nobody needs it
    EXPECT_NEAR(run.gradient_norm[s] / reference.gradient_norm[s], 1, 1e-4) << "step " << s;
  }
  EXPECT_EQ(run.model.elements(), reference.model.elements());
  EXPECT_LT(run.model.relative_error(reference.model), kTolerance);
}

// Four micro-batches on each of two data ranks.
GptCase small() {
  GptCase c = testing::tiny_local();
  c.layers = 4;
  c.global_batch = 8;
  return c;
}

struct Layout {
  const char* name;
  std::function<void(GptCase&)> change;
  const char* offload;  // members of the layout
};

class OffloadedStates : public ::testing::TestWithParam<Layout> {};

TEST_P(OffloadedStates, TrainLikeOneRankInTheMemoryThatIsForecast) {
  GptCase many = small();
  GetParam().change(many);
  many.extra_layout += std::string(", ") + GetParam().offload;
  GptCase one = small();
  one.tied = many.tied;
  const Scenario offloading = testing::gpt(many);
  const bool clips = offloading.training.grad_clip != GradClip::kNone;
  if (!clips) one.extra_training = many.extra_training;
  const TrainedRun run = train(offloading, kSteps);
  const TrainedRun& reference = testing::trained_once(testing::gpt(one), kSteps);
  expect_same(run, reference);
  for (const double norm : reference.gradient_norm) EXPECT_EQ(norm > 1, clips);
  testing::expect_forecast_peaks(offloading, run);
  testing::expect_forecast_host_peaks(offloading, run);
}

constexpr const char* kAll = R"("offload": {"optimizer": 1})";
constexpr const char* kHalf = R"("offload": {"optimizer": 0.5})";
constexpr const char* kWithParameters = R"("offload": {"optimizer": 1, "parameters": 1})";
constexpr const char* kInPieces =
    R"("offload": {"optimizer": 0.75}, "overlap": {"grad_reduce": true, "offload": true})";

void zero1(GptCase& c) { c.zero = 1; }
void zero2(GptCase& c) { c.zero = 2; }
void dp2_zero1(GptCase& c) { c.dp = 2, c.zero = 1; }
void dp2_zero2(GptCase& c) { c.dp = 2, c.zero = 2; }
void dp2_zero3(GptCase& c) { c.dp = 2, c.zero = 3; }
void in_buckets(GptCase& c) {
  dp2_zero2(c);
  c.extra_training = R"(, "bucket_elements": 5000)";
}
void not_clipped(GptCase& c) {
  dp2_zero2(c);
  c.extra_training = R"(, "grad_clip": "none")";
}
void pp2_zero2(GptCase& c) { dp2_zero2(c), c.pp = 2, c.tied = false; }
void pp2_zb_zero2(GptCase& c) { pp2_zero2(c), c.schedule = "zb-h1"; }
void megatron(GptCase& c) {
  dp2_zero1(c);
  c.framework = "megatron", c.tp = 2, c.sequence_parallel = true;
}
void megatron_zero3(GptCase& c) { dp2_zero3(c), c.framework = "megatron"; }
void deepspeed_zero1(GptCase& c) { dp2_zero1(c), c.framework = "deepspeed"; }
void deepspeed_zero2(GptCase& c) { dp2_zero2(c), c.framework = "deepspeed"; }
void deepspeed_zero3(GptCase& c) { dp2_zero3(c), c.framework = "deepspeed"; }
void fsdp(GptCase& c) { dp2_zero3(c), c.framework = "fsdp"; }
void fsdp_alone(GptCase& c) { c.framework = "fsdp", c.zero = 3; }
void fsdp_without_synchronisation(GptCase& c) {
  fsdp(c);
  c.extra_training = R"(, "no_sync": true)";
}
void fsdp_in_copies(GptCase& c) {
  fsdp(c);
  c.dp = 4;
  c.extra_layout = R"(, "shard_group": 2)";
}
void fsdp_pp2(GptCase& c) { fsdp(c), c.pp = 2, c.tied = false; }

const Layout kLayouts[] = {
    {"Alone", zero1, kAll},
    {"AloneHalf", zero1, kHalf},
    {"AloneZero2", zero2, kAll},
    {"Dp2Zero1", dp2_zero1, kHalf},
    {"Dp2Zero1InPieces", dp2_zero1, kInPieces},
    {"Dp2Zero2", dp2_zero2, kAll},
    {"Dp2Zero2HalfInBuckets", in_buckets, kHalf},
    {"Dp2Zero2InPieces", dp2_zero2, kInPieces},
    {"Dp2Zero2NotClipped", not_clipped, kAll},
    {"Dp2Zero3Half", dp2_zero3, kHalf},
    {"Dp2Zero3WithParameters", dp2_zero3, kWithParameters},
    {"Dp2Pp2Zero2", pp2_zero2, kAll},
    {"Dp2Pp2Zero2ZbH1", pp2_zb_zero2, kHalf},
    {"MegatronTp2Dp2", megatron, kHalf},
    {"MegatronTp2Dp2InPieces", megatron, kInPieces},
    {"MegatronDp2Zero3", megatron_zero3, kHalf},
    {"DeepSpeedZero1", deepspeed_zero1, kAll},
    {"DeepSpeedZero2", deepspeed_zero2, kAll},
    {"DeepSpeedZero3Half", deepspeed_zero3, kHalf},
    {"DeepSpeedZero3WithParameters", deepspeed_zero3, kWithParameters},
    {"FsdpAlone", fsdp_alone, kWithParameters},
    {"FsdpDp2", fsdp, kWithParameters},
    {"FsdpDp2WithoutSynchronisation", fsdp_without_synchronisation, kWithParameters},
    {"FsdpInTwoCopies", fsdp_in_copies, kWithParameters},
    {"FsdpDp2Pp2", fsdp_pp2, kWithParameters},
    {"FsdpDp2Pp2AndActivations", fsdp_pp2,
     R"("offload": {"optimizer": 1, "parameters": 1, "activations": 1})"},
};

INSTANTIATE_TEST_SUITE_P(Layouts, OffloadedStates, ::testing::ValuesIn(kLayouts),
                         [](const auto& tested) { return std::string(tested.param.name); });

// Experts have data ranks of their own: two rank groups, of which each has a fraction on the host.
TEST(OffloadedExperts, TrainLikeOneRankInTheMemoryThatIsForecast) {
  testing::VariantCase one;
  one.model = R"(,"moe":{"experts":8,"top_k":2,"ffn":24})";
  for (const int zero : each_of(std::vector{1, 3})) {
    testing::VariantCase c = one;
    c.dp = 4;
    c.ep = 2;
    c.zero = zero;
    c.experts = true;
    c.layout = R"(,"offload":{"optimizer":0.5})";
    const Scenario offloading = testing::variant(c);
    ExecutorOptions options;
    options.spread = spread_of(offloading);
    const TrainedRun run = train(offloading, kSteps);
    expect_same(run, train(testing::variant(one), kSteps, testing::on_host(), options));
    testing::expect_forecast_peaks(offloading, run);
    testing::expect_forecast_host_peaks(offloading, run);
  }
}

// All of Adam's states, 8 bytes, leave the device of a rank; its host has them with gradient and
// weight, 16 bytes.
TEST(OffloadedStates, LeaveTheDeviceParametersAndGradients) {
  GptCase c = small();
  const TrainedRun kept = train(testing::gpt(c), 1);
  zero1(c);
  c.extra_layout = std::string(", ") + kAll;
  const TrainedRun offloaded = train(testing::gpt(c), 1);
  const auto elements = static_cast<ByteCount>(kept.model.elements());
  EXPECT_EQ(total(kept.peaks.front()) - total(offloaded.peaks.front()), 8 * elements);
  EXPECT_EQ(total(offloaded.host_peaks.front()), 16 * elements);
  EXPECT_EQ(total(kept.host_peaks.front()), 0);
}

}  // namespace
}  // namespace stepcast::offloading
