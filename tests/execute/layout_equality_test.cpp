// SPDX-License-Identifier: Apache-2.0
// Every layout trains the same model: losses, gradient norms and updated parameters of several
// ranks equal those of one rank. That is the proof that no operation of a program is skipped.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "text_entropy.h"
#include "threaded_training.h"

namespace stepcast {
namespace {

using testing::GptCase;
using testing::train;
using testing::TrainedRun;

constexpr int kSteps = 3;
// fp32 sums in another order; Adam divides by the gradient's own size.
constexpr double kTolerance = 1e-5;

GptCase small() {
  GptCase c = testing::tiny_local();
  c.layers = 4;
  c.global_batch = 8;
  return c;
}

Scenario scenario(const GptCase& c) { return testing::gpt(c); }

struct Layout {
  const char* name;
  GptCase gpt;
};

class TrainsLikeOneRank : public ::testing::TestWithParam<Layout> {};

TEST_P(TrainsLikeOneRank, InLossGradientNormAndParameters) {
  GptCase one = small();
  const GptCase& many = GetParam().gpt;
  one.tied = many.tied;
  one.layers = many.layers;
  one.global_batch = many.global_batch;
  const TrainedRun& reference = testing::trained_once(scenario(one), kSteps);
  const TrainedRun parallel = train(scenario(many), kSteps);
  for (std::size_t s = 0; s < kSteps; ++s) {
    EXPECT_NEAR(parallel.loss[s] / reference.loss[s], 1, kTolerance) << "step " << s;
    EXPECT_NEAR(parallel.gradient_norm[s] / reference.gradient_norm[s], 1, 1e-4) << "step " << s;
  }
  EXPECT_EQ(parallel.model.elements(), reference.model.elements());
  EXPECT_LT(parallel.model.relative_error(reference.model), kTolerance);
}

template <class Change>
Layout layout(const char* name, Change change) {
  Layout out{name, small()};
  change(out.gpt);
  return out;
}

const Layout kLayouts[] = {
    layout("Accumulation", [](GptCase& c) { c.micro_batch = 2; }),
    layout("FullRecompute", [](GptCase& c) { c.recompute = "full"; }),
    layout("SelectiveRecompute", [](GptCase& c) { c.recompute = "selective"; }),
    layout("Unfused", [](GptCase& c) { c.attention = "unfused"; }),
    layout("UnfusedSelective",
           [](GptCase& c) {
             c.attention = "unfused";
             c.recompute = "selective";
           }),
    layout("Untied",
           [](GptCase& c) {
             c.tied = false;
             c.dp = 2;
           }),
    layout("Dp2", [](GptCase& c) { c.dp = 2; }),
    layout("Dp2WithoutOverlap",
           [](GptCase& c) {
             c.dp = 2;
             c.extra_layout = R"(, "overlap": {"grad_reduce": false})";
           }),
    layout("Dp2InManyBuckets",
           [](GptCase& c) {
             c.dp = 2;
             c.extra_training = R"(, "bucket_elements": 1000)";
           }),
    layout("Dp4Zero1",
           [](GptCase& c) {
             c.dp = 4;
             c.zero = 1;
             c.extra_training = R"(, "bucket_elements": 20000)";
           }),
    layout("Dp2Zero1GatheredAhead",
           [](GptCase& c) {
             c.dp = 2;
             c.zero = 1;
             c.extra_training = R"(, "bucket_elements": 20000)";
             c.extra_layout = R"(, "overlap": {"param_gather": true})";
           }),
    layout("Dp2Zero2",
           [](GptCase& c) {
             c.dp = 2;
             c.zero = 2;
             c.extra_training = R"(, "bucket_elements": 20000)";
           }),
    layout("Dp2Zero3",
           [](GptCase& c) {
             c.dp = 2;
             c.zero = 3;
           }),
    layout("Dp4Zero3Untied",
           [](GptCase& c) {
             c.dp = 4;
             c.zero = 3;
             c.tied = false;
           }),
    layout("Fsdp",
           [](GptCase& c) {
             c.framework = "fsdp";
             c.dp = 2;
             c.zero = 3;
           }),
    layout("FsdpWithoutSynchronisation",
           [](GptCase& c) {
             c.framework = "fsdp";
             c.dp = 2;
             c.zero = 3;
             c.extra_training = R"(, "no_sync": true)";
           }),
    layout("FsdpZero2",
           [](GptCase& c) {
             c.framework = "fsdp";
             c.dp = 2;
             c.zero = 2;
           }),
    layout("DeepSpeedZero1",
           [](GptCase& c) {
             c.framework = "deepspeed";
             c.dp = 2;
             c.zero = 1;
           }),
    layout("DeepSpeedZero2",
           [](GptCase& c) {
             c.framework = "deepspeed";
             c.dp = 2;
             c.zero = 2;
           }),
    layout("DeepSpeedZero3",
           [](GptCase& c) {
             c.framework = "deepspeed";
             c.dp = 3;
             c.global_batch = 6;
             c.zero = 3;
           }),
    layout("Megatron",
           [](GptCase& c) {
             c.framework = "megatron";
             c.dp = 2;
             c.zero = 1;
           }),
    layout("Tp2", [](GptCase& c) { c.tp = 2; }),
    layout("Tp4", [](GptCase& c) { c.tp = 4; }),
    layout("Tp2Sequence",
           [](GptCase& c) {
             c.tp = 2;
             c.sequence_parallel = true;
           }),
    layout("Tp2SequenceMicroBatch2",
           [](GptCase& c) {
             c.tp = 2;
             c.micro_batch = 2;
             c.sequence_parallel = true;
             c.recompute = "full";
           }),
    layout("Pp2Gpipe",
           [](GptCase& c) {
             c.pp = 2;
             c.schedule = "gpipe";
           }),
    layout("Pp2", [](GptCase& c) { c.pp = 2; }),
    layout("Pp4Untied",
           [](GptCase& c) {
             c.pp = 4;
             c.tied = false;
           }),
    layout("Pp2Interleaved",
           [](GptCase& c) {
             c.pp = 2;
             c.schedule = "interleaved";
             c.virtual_stages = 2;
           }),
    layout("Pp2LoopedBfs",
           [](GptCase& c) { c.pp = 2, c.schedule = "looped-bfs", c.virtual_stages = 2; }),
    layout("Pp2ZbH1", [](GptCase& c) { c.pp = 2, c.schedule = "zb-h1"; }),
    layout("Pp2ZbH2", [](GptCase& c) { c.pp = 2, c.schedule = "zb-h2"; }),
    layout("Pp4Zb1p", [](GptCase& c) { c.pp = 4, c.schedule = "zb-1p"; }),
    layout("Tp2Pp2Zb2p", [](GptCase& c) { c.tp = 2, c.pp = 2, c.schedule = "zb-2p"; }),
    layout("Pp2ZbV", [](GptCase& c) { c.pp = 2, c.schedule = "zb-v", c.virtual_stages = 2; }),
    layout("Pp2VHalf", [](GptCase& c) { c.pp = 2, c.schedule = "v-half", c.virtual_stages = 2; }),
    layout("Dp2Pp2VMinUntied",
           [](GptCase& c) {
             c.dp = 2, c.pp = 2, c.tied = false;
             c.schedule = "v-min", c.virtual_stages = 2;
           }),
    layout("Pp2OneForwardOneBackwardV",
           [](GptCase& c) { c.pp = 2, c.schedule = "1f1b-v", c.virtual_stages = 2; }),
    layout("Pp4Auto", [](GptCase& c) { c.pp = 4, c.schedule = "auto"; }),
    layout("Pp2AutoFolded",
           [](GptCase& c) { c.pp = 2, c.schedule = "auto", c.virtual_stages = 2; }),
    layout("Pp2DualPipeV",
           [](GptCase& c) { c.pp = 2, c.schedule = "dualpipev", c.virtual_stages = 2; }),
    layout("Pp2DualPipe",
           [](GptCase& c) { c.pp = 2, c.schedule = "dualpipe", c.virtual_stages = 2; }),
    layout("Dp2Pp2DualPipeZero1",
           [](GptCase& c) {
             c.dp = 2, c.pp = 2, c.zero = 1;
             c.schedule = "dualpipe", c.virtual_stages = 2;
             c.extra_training = R"(, "bucket_elements": 5000)";
           }),
    layout("MegatronTp2Pp2DualPipe",
           [](GptCase& c) {
             c.framework = "megatron";
             c.tp = 2, c.pp = 2, c.zero = 1, c.sequence_parallel = true;
             c.schedule = "dualpipe", c.virtual_stages = 2;
             c.extra_layout = R"(, "overlap": {"grad_reduce": true, "param_gather": true})";
           }),
    layout("Pp4DualPipeUntied",
           [](GptCase& c) {
             c.pp = 4, c.schedule = "dualpipe", c.virtual_stages = 2;
             c.tied = false;
           }),
    layout("Dp2Pp2ZbVZero1Untied",
           [](GptCase& c) {
             c.dp = 2;
             c.pp = 2;
             c.zero = 1;
             c.schedule = "zb-v";
             c.virtual_stages = 2;
             c.tied = false;
           }),
    layout("Tp2Pp2", [](GptCase& c) { c.tp = 2, c.pp = 2; }),
    layout("Dp2Pp2Zero1",
           [](GptCase& c) {
             c.dp = 2;
             c.pp = 2;
             c.zero = 1;
           }),
    layout("Tp2Dp2Pp2",
           [](GptCase& c) {
             c.tp = 2;
             c.dp = 2;
             c.pp = 2;
           }),
    layout("Tp2Dp2Pp2SequenceInBuckets",
           [](GptCase& c) {
             c.tp = 2;
             c.dp = 2;
             c.pp = 2;
             c.sequence_parallel = true;
             c.extra_training = R"(, "bucket_elements": 5000)";
           }),
    layout("MegatronTp2Dp2Pp2Interleaved",
           [](GptCase& c) {
             c.framework = "megatron";
             c.tp = 2;
             c.dp = 2;
             c.pp = 2;
             c.zero = 1;
             c.schedule = "interleaved";
             c.virtual_stages = 2;
             c.sequence_parallel = true;
             c.recompute = "selective";
           }),
    layout("Pp2DefersTheHead",
           [](GptCase& c) { c.pp = 2, c.extra_layout = R"(, "defer_head_wgrad": 3)"; }),
    layout("MegatronTp2Dp2Pp2InterleavedDefersTheHead",
           [](GptCase& c) {
             c.framework = "megatron";
             c.tp = 2, c.dp = 2, c.pp = 2, c.zero = 1;
             c.schedule = "interleaved", c.virtual_stages = 2;
             c.sequence_parallel = true, c.tied = false;
             c.extra_layout = R"(, "defer_head_wgrad": "all")";
           }),
    layout("MegatronTp2Pp2ScattersBoundary",
           [](GptCase& c) {
             c.framework = "megatron";
             c.tp = 2;
             c.pp = 2;
           }),
    layout("Dp2Pp2Zero2Untied", [](GptCase& c) { c.dp = c.pp = 2, c.zero = 2, c.tied = false; }),
    layout("Dp2Pp2Zero2InManyBuckets",
           [](GptCase& c) {
             c.dp = c.pp = 2, c.zero = 2;
             c.extra_training = R"(, "bucket_elements": 5000)";
           }),
    layout("Dp2Pp2Zero2ZbV",
           [](GptCase& c) {
             c.dp = c.pp = 2, c.zero = 2;
             c.schedule = "zb-v", c.virtual_stages = 2;
           }),
    layout("Dp2Pp2Zero2OneForwardOneBackwardV",
           [](GptCase& c) {
             c.dp = c.pp = 2, c.zero = 2;
             c.schedule = "1f1b-v", c.virtual_stages = 2;
           }),
    layout("Dp2Pp2Zero3", [](GptCase& c) { c.dp = c.pp = 2, c.zero = 3; }),
    layout("Dp2Pp2Zero3Interleaved",
           [](GptCase& c) {
             c.dp = c.pp = 2, c.zero = 3, c.recompute = "full";
             c.schedule = "interleaved", c.virtual_stages = 2;
           }),
    layout("Dp2Pp2Zero3ZbH1",
           [](GptCase& c) { c.dp = c.pp = 2, c.zero = 3, c.schedule = "zb-h1"; }),
    layout("MegatronDp2Pp2Zero3",
           [](GptCase& c) { c.framework = "megatron", c.dp = c.pp = 2, c.zero = 3; }),
    layout("FsdpDp2Pp2", [](GptCase& c) { c.framework = "fsdp", c.dp = c.pp = 2, c.zero = 3; }),
    layout("ReplicatedDp2", [](GptCase& c) { c.framework = "fsdp", c.dp = 2, c.zero = 0; }),
    layout("ReplicatedTp2Dp2Pp2",
           [](GptCase& c) {
             c.framework = "fsdp", c.tp = c.dp = c.pp = 2, c.zero = 0;
             c.extra_training = R"(, "grad_clip": "global")";
           }),
    layout("FsdpDp2Pp2Zero2Interleaved",
           [](GptCase& c) {
             c.framework = "fsdp", c.dp = c.pp = 2, c.zero = 2;
             c.schedule = "interleaved", c.virtual_stages = 2;
           }),
    layout("FsdpDp2Pp2ZbVUntied",
           [](GptCase& c) {
             c.framework = "fsdp", c.dp = c.pp = 2, c.zero = 3, c.tied = false;
             c.schedule = "zb-v", c.virtual_stages = 2;
             c.extra_training = R"(, "grad_clip": "global")";
           }),
    layout("FsdpTp2Dp2Pp2Zero2Zb1p",
           [](GptCase& c) {
             c.framework = "fsdp", c.tp = c.dp = c.pp = 2, c.zero = 2;
             c.sequence_parallel = true, c.schedule = "zb-1p";
           }),
    layout("Pp2Offloaded",
           [](GptCase& c) {
             c.pp = 2, c.layers = 8;
             c.extra_layout = R"(, "offload": {"activations": 1})";
           }),
    layout("Pp2InterleavedOffloaded",
           [](GptCase& c) {
             c.pp = 2, c.layers = 8, c.schedule = "interleaved", c.virtual_stages = 2;
             c.extra_layout = R"(, "offload": {"activations": 0.5})";
           }),
    layout("Dp2Pp2ZbVOffloadedZero3Untied",
           [](GptCase& c) {
             c.dp = c.pp = 2, c.layers = 8, c.zero = 3, c.tied = false;
             c.schedule = "zb-v", c.virtual_stages = 2;
             c.extra_layout = R"(, "offload": {"activations": 1})";
           }),
    layout("FsdpInTwoCopies",
           [](GptCase& c) {
             c.framework = "fsdp", c.dp = 4, c.zero = 3;
             c.extra_layout = R"(, "shard_group": 2)";
           }),
    layout("FsdpInTwoCopiesPp2",
           [](GptCase& c) {
             c.framework = "fsdp", c.dp = 4, c.pp = 2, c.zero = 2;
             c.extra_layout = R"(, "shard_group": 2)";
           }),
    layout("MegatronInTwoCopies",
           [](GptCase& c) {
             c.framework = "megatron", c.dp = 4, c.zero = 1;
             c.extra_layout = R"(, "shard_group": 2)";
           }),
    layout("Tp2Dp2Zero3Sequence",
           [](GptCase& c) {
             c.tp = 2;
             c.dp = 2;
             c.zero = 3;
             c.sequence_parallel = true;
           }),
};

// A model that knows only how often tokens occur has log(vocabulary), none gets below the entropy.
TEST(TrainedRun, LearnsTheTextDownTowardsItsEntropy) {
  GptCase c = small();
  c.layers = 1;
  const TrainedRun trained = train(scenario(c), 700);
  const double entropy = testing::text_entropy_nats(ExecutorOptions{}.fan_out);
  EXPECT_NEAR(trained.loss.front(), std::log(c.vocab), 0.1);
  EXPECT_LT(trained.loss.back(), 0.5 * (std::log(c.vocab) + entropy));
  EXPECT_GT(trained.loss.back(), 0.9 * entropy);
}

INSTANTIATE_TEST_SUITE_P(Layouts, TrainsLikeOneRank, ::testing::ValuesIn(kLayouts),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace stepcast
