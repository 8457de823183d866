// SPDX-License-Identifier: Apache-2.0
// Passes are cut at collectives that share links with other traffic, and nowhere else; what is cut
// gives the times of its kernels and of every rank.
#include "predict/cut_passes.h"

#include <gtest/gtest.h>

#include "predict/memory_replay.h"
#include "predict/prediction.h"
#include "program/walk.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::GptCase;
using testing::scenario_from;
using testing::source_folders;
using testing::text_of;

// Tensor-parallel groups of `tp` on nodes of four GPUs, gradients reduced beside the backward.
GptCase over_nodes(int tp, int pp, int dp) {
  GptCase c;
  c.tp = tp;
  c.pp = pp;
  c.dp = dp;
  c.hidden = 4096;
  c.heads = 32;
  c.sequence = 1024;
  c.layers = 12;  // several buckets of gradients
  c.global_batch = 2 * dp;
  c.cluster = R"("base": "dgx-a100-80g", "gpus_per_node": 4, "nics_per_node": 2)";
  if (dp > 1) c.extra_layout = R"(, "overlap": {"grad_reduce": true})";
  return c;
}

struct Cut {
  explicit Cut(const GptCase& c)
      : scenario(scenario_from(text_of(c))), grid(scenario.layout), program(lower(scenario)) {
    auto made = make_pricing(scenario, source_folders());
    EXPECT_TRUE(made.has_value());
    pricing = std::move(*made);
    const Traffic traffic = place_traffic(scenario, program, grid, pricing->collectives);
    cuts = find_cuts(scenario, program, grid, traffic, *pricing);
  }
  Scenario scenario;
  RankGrid grid;
  Program program;
  std::unique_ptr<Pricing> pricing;
  Cuts cuts;
};

Prediction forecast(const GptCase& c, const PredictOptions& options = {}) {
  auto prediction = predict(scenario_from(text_of(c)), source_folders(), options);
  EXPECT_TRUE(prediction.has_value()) << text_of(c);
  return prediction ? std::move(*prediction) : Prediction{};
}

TEST(TransferWindows, LieBetweenWhatIsAwaitedAndWhatWaits) {
  const Program program = lower(scenario_from(text_of(over_nodes(8, 1, 2))));
  const std::vector<Instruction>& list = program.roles[0].instructions;
  const std::vector<TransferWindow> windows = transfer_windows(program.roles[0]);
  int reductions = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].stream != Stream::kReduce) continue;
    ++reductions;
    ASSERT_EQ(list[i].waits.size(), 1U);
    EXPECT_GE(windows[i].after, *list[i].waits.begin());
    // The gradient norm's block waits for the last of them.
    const auto& before = list[static_cast<std::size_t>(windows[i].before)];
    EXPECT_EQ(before.stream, Stream::kCompute);
    EXPECT_FALSE(before.is<RunPass>());
  }
  EXPECT_GT(reductions, 0);
}

TEST(Cuts, AreMadeWhereAGroupOverNodesMeetsTheReductionOfGradients) {
  const Cut made(over_nodes(8, 1, 2));
  ASSERT_EQ(made.cuts.size(), 1U);
  const std::vector<Instruction>& list = made.program.roles[0].instructions;
  int cut = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto* pass = list[i].as<RunPass>();
    if (made.cuts[0][i].empty()) continue;
    ++cut;
    // Gradients are reduced behind the last backward alone; the first micro-batch stays whole.
    ASSERT_NE(pass, nullptr);
    EXPECT_EQ(pass->slot.pass, Pass::kBackward);
    EXPECT_EQ(pass->slot.micro_batch, 1);
    EXPECT_EQ(made.cuts[0][i], std::vector{AxisGroup::kTensor});
  }
  EXPECT_GT(cut, 0);
}

TEST(Cuts, AreNotMadeWhereNothingIsShared) {
  GptCase inside_a_node = over_nodes(8, 1, 2);
  inside_a_node.cluster = R"("base": "dgx-a100-80g")";
  EXPECT_TRUE(Cut(inside_a_node).cuts.empty());
  GptCase one_after_the_other = over_nodes(8, 1, 2);
  one_after_the_other.extra_layout = R"(, "overlap": {"grad_reduce": false})";
  EXPECT_TRUE(Cut(one_after_the_other).cuts.empty());
  EXPECT_TRUE(Cut(over_nodes(8, 1, 1)).cuts.empty());
}

TEST(CutPasses, RunTheSameOperationsInTheSameOrder) {
  const Cut made(over_nodes(8, 1, 2));
  ASSERT_FALSE(made.cuts.empty());
  const Program cut = cut_passes(made.program, made.cuts);
  const auto operations = [](const Program& program) {
    std::vector<std::string> out;
    for (const Instruction& what : program.roles[0].instructions) {
      const auto* call = what.as<CollectiveCall>();
      if (call != nullptr && call->purpose == Purpose::kActivations) out.push_back(what.name);
      for_each_operation(program, program.roles[0], what,
                         [&](const Operation& one, const BlockVisit&) { out.push_back(one.name); });
    }
    return out;
  };
  EXPECT_EQ(operations(cut), operations(made.program));
  EXPECT_GT(cut.roles[0].instructions.size(), made.program.roles[0].instructions.size() + 8);
}

// Traffic on shared links takes longer than alone, and each link is used by both.
TEST(CutPasses, LoseTimeToTheTrafficBesideThem) {
  for (const GptCase& c : {over_nodes(8, 1, 2), over_nodes(8, 2, 2)}) {
    ASSERT_FALSE(Cut(c).cuts.empty());
    const double shared = forecast(c).step_time.value();
    const double alone = forecast(c, {.contention = false}).step_time.value();
    EXPECT_GT(shared, alone * 1.01);
  }
}

TEST(CutPasses, GiveTheTimesOfTheirKernelsAndOfEveryRank) {
  int cut = 0;
  for (const GptCase& c :
       {over_nodes(8, 1, 2), over_nodes(8, 2, 1), over_nodes(8, 2, 2), over_nodes(2, 2, 4)}) {
    const bool shares = !Cut(c).cuts.empty();
    cut += shares ? 1 : 0;
    const Prediction folded = forecast(c);
    const Prediction whole = forecast(c, {.fold = false});
    const Prediction expanded = forecast(c, {.expand = true});
    const double step = folded.step_time.value();
    EXPECT_NEAR(whole.step_time.value(), step, 1e-9 * step) << text_of(c);
    EXPECT_NEAR(expanded.step_time.value(), step, 1e-9 * step + 1e-7) << text_of(c);
    EXPECT_NEAR(folded.time.total().value(), step, 1e-9 * step) << text_of(c);
    EXPECT_EQ(folded.peak_memory, whole.peak_memory);
    EXPECT_GT(expanded.simulated_tasks, folded.simulated_tasks);
    EXPECT_GT(folded.time.exposed_tp.value(), 0);
  }
  EXPECT_GE(cut, 2);
}

// A cut changes times, and no byte of memory.
TEST(CutPasses, HoldWhatTheirPassHolds) {
  const Cut made(over_nodes(8, 1, 2));
  ASSERT_FALSE(made.cuts.empty());
  const Program cut = cut_passes(made.program, made.cuts);
  const MemoryPeak whole = replay_memory(made.program, made.program.roles[0]);
  const MemoryPeak parts = replay_memory(cut, cut.roles[0]);
  EXPECT_EQ(whole.parts, parts.parts);
}

}  // namespace
}  // namespace stepcast
