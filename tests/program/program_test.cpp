// SPDX-License-Identifier: Apache-2.0
#include "program/program.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "core/each.h"
#include "program/block_builder.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

double flops(const std::vector<Operation>& operations, Phase phase) {
  double sum = 0;
  for (const Operation& operation : operations) {
    if (operation.phase == phase) sum += flops_of(operation).value();
  }
  return sum;
}

// Forward 2 per weight and token and 4 s h of unfused attention per token and layer; backward twice
// that. V is padded to 128 x tp unless the model says otherwise.
TEST(Program, FlopsOfAllRanksAreThoseOfTheModel) {
  for (const int tp : {1, 2, 4}) {
    GptCase c;
    c.tp = tp;
    const Program program = lower(gpt(c));
    double forward = 0, backward = 0;
    for (const BlockId id : program.roles[0].chunks[0].blocks) {
      forward += flops(program.block(id).pass(Pass::kForward).operations, Phase::kForward);
      backward += flops(program.block(id).pass(Pass::kBackward).operations, Phase::kBackward);
    }
    const double s = c.sequence, h = c.hidden;
    const double expected = s * (c.layers * (24 * h * h + 4 * s * h) + 2 * h * c.vocab);
    EXPECT_DOUBLE_EQ(forward * tp, expected);
    EXPECT_DOUBLE_EQ(backward * tp, 2 * expected);
  }
}

// OPT-350M, width 512 in 1,024: the head's products are out of the blocks and with the table, the
// embedding's one into them; backward each twice, for a tied table too.
TEST(Program, ATableOfAnotherWidthIsProjectedInAndOut) {
  const Scenario scenario = testing::scenario_from(
      R"({"stepcast": 1, "model": "opt-350m", "cluster": {"base": "dgx-h100", "gpus": 1},
          "training": {"framework": "deepspeed", "global_batch": 1, "sequence_length": 1024},
          "layout": {"zero": 0}})");
  const Program program = lower(scenario);
  const std::int64_t padding = Shape(scenario).vocab - scenario.model.vocab;
  EXPECT_EQ(program.roles[0].parameters, count_parameters(scenario.model).total() + padding * 512);
  const double s = 1024, h = 1024, e = 512, vocab = static_cast<double>(Shape(scenario).vocab);
  std::map<BlockKind, double> forward, backward;
  for (const BlockId id : program.roles[0].chunks[0].blocks) {
    const Block& block = program.block(id);
    forward[block.kind] += flops(block.pass(Pass::kForward).operations, Phase::kForward);
    backward[block.kind] += flops(block.pass(Pass::kBackward).operations, Phase::kBackward);
  }
  EXPECT_EQ(forward[BlockKind::kEmbedding], 2 * s * h * e);
  EXPECT_EQ(backward[BlockKind::kEmbedding], 4 * s * h * e);
  EXPECT_EQ(forward[BlockKind::kHead], 2 * s * e * (h + vocab));
  EXPECT_EQ(backward[BlockKind::kHead], 4 * s * e * (h + vocab));
}

TEST(Program, FullRecomputeRunsEachLayersForwardTwice) {
  GptCase c;
  c.recompute = "full";
  const Program program = lower(gpt(c));
  AtLeast layers(1);
  for (const BlockId id : program.roles[0].chunks[0].blocks) {
    const Block& block = program.block(id);
    if (block.kind != BlockKind::kLayer) continue;
    ++layers;
    EXPECT_DOUBLE_EQ(flops(block.pass(Pass::kBackward).operations, Phase::kRecompute),
                     flops(block.pass(Pass::kForward).operations, Phase::kForward));
  }
}

std::vector<CollectiveKind> reductions(const GptCase& c) {
  std::vector<CollectiveKind> out;
  const Program program = lower(gpt(c));
  for (const Instruction& instruction : program.roles[0].instructions) {
    const auto* call = instruction.as<CollectiveCall>();
    if (call != nullptr && call->purpose == Purpose::kGradients) out.push_back(call->message.kind);
  }
  return out;
}

// zero/stage_1_and_2.py sums whole buckets in ZeRO-1; zero/stage1.py before it scattered the sums.
TEST(Program, Zero1OfDeepSpeedSumsWholeGradients) {
  GptCase c;
  c.framework = "deepspeed";
  c.dp = 2;
  c.zero = 1;
  EXPECT_EQ(reductions(c), std::vector{CollectiveKind::kAllReduce});
  c.extra_training = R"(, "release": "2021-06")";
  EXPECT_EQ(reductions(c), std::vector{CollectiveKind::kReduceScatter});
  c.extra_training = R"(, "release": "2021-06", "grad_precision": "fp32")";
  EXPECT_EQ(reductions(c), std::vector{CollectiveKind::kAllReduce});  // of its optimizer for bf16
  c.framework = "megatron";
  EXPECT_EQ(reductions(c), std::vector{CollectiveKind::kReduceScatter});
}

// 2 + 4 bytes to cast a gradient, 4 + 4 + 4 to add it up.
TEST(Program, Bf16OptimizerOfDeepSpeedAddsGradientsThroughACopy) {
  GptCase c;
  c.framework = "deepspeed";
  c.extra_training = R"(, "grad_precision": "fp32")";
  const Program program = lower(gpt(c));
  const Block& layer = program.block(program.roles[0].chunks[0].blocks[1]);
  std::int64_t sums = 0;
  for (const Operation& operation : layer.pass(Pass::kBackward).operations) {
    const auto* sum = std::get_if<Accumulate>(&operation.work);
    if (sum == nullptr) continue;
    ++sums;
    EXPECT_DOUBLE_EQ(sum->size.bytes, 18.0 * static_cast<double>(sum->size.elements));
    EXPECT_EQ(layer.buffers[operation.writes.front().index()].size(), 4 * sum->size.elements);
    EXPECT_EQ(layer.buffers[operation.reads.front().index()].size(), 0);  // among the states
  }
  EXPECT_EQ(sums, 4);
}

TEST(Program, ParametersOfAllRanksAreThoseOfTheModel) {
  GptCase c;
  c.pp = 2;
  c.tied = false;
  const Scenario scenario = gpt(c);
  std::int64_t sum = 0;
  for (const Role& role : lower(scenario).roles) sum += role.parameters;
  EXPECT_EQ(sum, count_parameters(scenario.model).total());
}

TEST(Program, ATiedTableIsHeldByBothEndsOfAPipeline) {
  GptCase c;
  c.pp = 2;
  const Scenario scenario = gpt(c);
  std::int64_t sum = 0;
  for (const Role& role : lower(scenario).roles) sum += role.parameters;
  EXPECT_EQ(sum, count_parameters(scenario.model).total() + c.vocab * c.hidden);
}

// Each send of a role has its receive, tag for tag, on the stage that it names.
TEST(Program, SendsAndReceivesMatch) {
  std::mt19937 random(7);
  for (int i = 0; i < 30; ++i) {
    GptCase c;
    c.pp = 1 << std::uniform_int_distribution<>(1, 3)(random);
    const bool interleaved = i % 2 == 1;
    c.virtual_stages = interleaved ? 2 : 1;
    c.schedule = interleaved ? "interleaved" : i % 4 == 0 ? "gpipe" : "1f1b";
    c.layers = c.pp * c.virtual_stages * 2;
    c.global_batch = c.pp * std::uniform_int_distribution<>(1, 3)(random);
    const Program program = lower(gpt(c));
    std::map<std::tuple<int, int, std::int64_t>, int> open;
    for (const Role& role : program.roles) {
      for (const Instruction& what : role.instructions) {
        const auto* send = what.as<Send>();
        const auto* receive = what.as<Receive>();
        if (send != nullptr) ++open[{role.stage, send->peer, send->tag}];
        if (receive != nullptr) --open[{receive->peer, role.stage, receive->tag}];
      }
    }
    for (const auto& [key, count] : open) EXPECT_EQ(count, 0);
    EXPECT_FALSE(open.empty());
  }
}

// Bytes that one rank passes to the gradient reduction in a step: each element once.
TEST(Program, GradientsAreReducedOncePerStepWhateverTheBuckets) {
  for (const bool overlap : {false, true}) {
    GptCase c;
    c.dp = 4;
    c.hidden = 2048;
    c.heads = 16;
    c.extra_layout =
        std::string(R"(, "overlap": {"grad_reduce": )") + (overlap ? "true}" : "false}");
    const Program program = lower(gpt(c));
    ByteCount reduced = 0;
    for (const Instruction& what : program.roles[0].instructions) {
      const auto* call = what.as<CollectiveCall>();
      if (call != nullptr && call->group == AxisGroup::kData) reduced += call->message.bytes;
    }
    EXPECT_EQ(reduced, program.roles[0].parameters * 4);
  }
}

// FSDP moves 3 Psi per micro-batch (gather, gather again, reduce), without resharding 2 Psi
// (Zhao et al. 2023); per step, ZeRO-1 moves 2 Psi.
TEST(Program, ShardedVolumesFollowTheZeroStage) {
  const auto volume = [](int zero) {
    GptCase c;
    c.framework = "fsdp";
    c.dp = 4;
    c.zero = zero;
    c.global_batch = 4;
    c.extra_training = R"(, "reduce_precision": "bf16")";
    const Program program = lower(gpt(c));
    ByteCount root = 0, sum = 0;
    for (const Instruction& what : program.roles[0].instructions) {
      const auto* call = what.as<CollectiveCall>();
      if (call == nullptr || call->group != AxisGroup::kData) continue;
      sum += call->message.bytes;
      if (std::string(what.name) == "gather_root") root += call->message.bytes;
    }
    // The root unit stays gathered through the backward.
    return std::pair{
        sum, program.roles[0].parameters * 2 * (zero == 3 ? 3 : 2) - (zero == 3 ? root : 0)};
  };
  for (const int zero : {2, 3}) {
    const auto [sum, expected] = volume(zero);
    EXPECT_EQ(sum, expected);
  }
}

}  // namespace
}  // namespace stepcast
