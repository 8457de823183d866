// SPDX-License-Identifier: Apache-2.0
// Passes are stamped into the step where their collectives share links with other traffic, and
// nowhere else; what is stamped gives the times of its kernels and of every rank.
#include "predict/shared_links.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "core/seeded_random.h"
#include "expert_scenarios.h"
#include "predict/prediction.h"
#include "replayed_program.h"
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

struct Found {
  explicit Found(const GptCase& c)
      : scenario(scenario_from(text_of(c))), grid(scenario.layout), program(lower(scenario)) {
    auto made = make_pricing(scenario, source_folders());
    EXPECT_TRUE(made.has_value());
    pricing = std::move(*made);
    const Traffic traffic = place_traffic(scenario, program, grid, pricing->collectives);
    stamps = find_stamps(scenario, program, grid, traffic, *pricing);
  }
  Scenario scenario;
  RankGrid grid;
  Program program;
  std::unique_ptr<Pricing> pricing;
  Stamps stamps;
};

Prediction forecast_of(const GptCase& c, const PredictOptions& options = {}) {
  auto prediction = predict(scenario_from(text_of(c)), source_folders(), options);
  EXPECT_TRUE(prediction.has_value()) << text_of(c);
  return prediction ? std::move(*prediction) : Prediction{};
}

// Tensor-parallel groups of three stages share the nodes: they send when their own passes run, not
// in step. With a PCIe twice as fast the step took 1.2 times as long when stage 1 was taken to send
// all the time beside the others.
TEST(StampedPasses, MeetThePassesOfOtherStagesOnTheirLinks) {
  const auto step = [](const std::string& pcie, bool contention) {
    const auto scenario = scenario_from(
        R"({"stepcast": 1, "model": "bloom-7b1", "cluster": {"base": "a100-pcie-8", "nodes": 6,
            "pcie": ")" +
        pcie + R"(", "scale_up_bandwidth": ")" + pcie +
        R"("}, "training": {"global_batch": 16, "sequence_length": 2048, "precision": "fp32",
            "framework": "native"}, "layout": {"tp": 8, "pp": 3, "order": "ep-dp-pp-tp-cp"}})");
    const auto prediction = predict(scenario, source_folders(), {.contention = contention});
    EXPECT_TRUE(prediction.has_value());
    return prediction ? prediction->step_time.value() : 0;
  };
  EXPECT_GT(step("31.5 GB/s", true), 1.05 * step("31.5 GB/s", false));
  EXPECT_LE(step("63 GB/s", true), step("31.5 GB/s", true));
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

TEST(Stamps, AreMadeWhereAGroupOverNodesMeetsTheReductionOfGradients) {
  const Found made(over_nodes(8, 1, 2));
  ASSERT_EQ(made.stamps.size(), 1U);
  const std::vector<Instruction>& list = made.program.roles[0].instructions;
  int stamped = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto* pass = list[i].as<RunPass>();
    if (made.stamps[0][i].empty()) continue;
    ++stamped;
    // Gradients are reduced behind the last backward alone; the first micro-batch stays whole.
    ASSERT_NE(pass, nullptr);
    EXPECT_EQ(pass->slot.pass, Pass::kBackward);
    EXPECT_EQ(pass->slot.micro_batch, 1);
    EXPECT_EQ(made.stamps[0][i], std::vector{AxisGroup::kTensor});
  }
  EXPECT_GT(stamped, 0);
}

TEST(Stamps, AreNotMadeWhereNothingIsShared) {
  GptCase inside_a_node = over_nodes(8, 1, 2);
  inside_a_node.cluster = R"("base": "dgx-a100-80g")";
  EXPECT_TRUE(Found(inside_a_node).stamps.empty());
  GptCase one_after_the_other = over_nodes(8, 1, 2);
  one_after_the_other.extra_layout = R"(, "overlap": {"grad_reduce": false})";
  EXPECT_TRUE(Found(one_after_the_other).stamps.empty());
  EXPECT_TRUE(Found(over_nodes(8, 1, 1)).stamps.empty());
}

// Traffic on shared links takes longer than alone, and each link is used by both.
TEST(StampedPasses, LoseTimeToTheTrafficBesideThem) {
  for (const GptCase& c : {over_nodes(8, 1, 2), over_nodes(8, 2, 2)}) {
    ASSERT_FALSE(Found(c).stamps.empty());
    const double shared = forecast_of(c).step_time.value();
    const double alone = forecast_of(c, {.contention = false}).step_time.value();
    EXPECT_GT(shared, alone * 1.01);
  }
}

TEST(StampedPasses, GiveTheTimesOfTheirKernelsAndOfEveryRank) {
  int stamped = 0;
  for (const GptCase& c :
       {over_nodes(8, 1, 2), over_nodes(8, 2, 1), over_nodes(8, 2, 2), over_nodes(2, 2, 4)}) {
    const bool shares = !Found(c).stamps.empty();
    stamped += shares ? 1 : 0;
    const Prediction folded = forecast_of(c);
    const Prediction whole = forecast_of(c, {.fold = false});
    const Prediction expanded = forecast_of(c, {.expand = true});
    const double step = folded.step_time.value();
    EXPECT_NEAR(whole.step_time.value(), step, 1e-9 * step) << text_of(c);
    EXPECT_NEAR(expanded.step_time.value(), step, 1e-9 * step + 1e-7) << text_of(c);
    EXPECT_NEAR(folded.time.total().value(), step, 1e-9 * step) << text_of(c);
    EXPECT_EQ(folded.peak_memory, whole.peak_memory);
    EXPECT_GT(expanded.simulated_tasks, folded.simulated_tasks);
    EXPECT_GT(folded.time.exposed_tp.value(), 0);
  }
  EXPECT_GE(stamped, 2);
}

// Layouts whose groups lie over nodes, with any of the traffic beside them.
std::string random_case(SeededRandom& random) {
  const bool experts = random.below(2) == 0;
  const auto one_of = [&](std::initializer_list<int> values) {
    return *(values.begin() + random.below(static_cast<std::int64_t>(values.size())));
  };
  const bool reduces = random.below(2) == 0;
  const char* cluster = random.below(2) == 0 ? "dgx-a100-80g" : "dgx-h100";
  if (experts) {
    testing::ExpertCase c;
    c.cluster = cluster;
    c.layers = 4;
    c.pp = one_of({1, 2});
    c.dp = 16;
    c.ep = one_of({4, 8, 16});
    c.hidden = one_of({1024, 4096});
    c.heads = 32;
    c.sequence = 2048;
    c.ffn = one_of({512, 2048});
    c.global_batch = 16 * one_of({1, 2, 4});
    c.more_layout = reduces ? R"(,"overlap":{"grad_reduce":true})" : "";
    return testing::text_of(c);
  }
  GptCase c;
  c.tp = one_of({2, 8});
  c.pp = one_of({1, 2});
  c.dp = one_of({2, 4});
  c.hidden = one_of({1024, 4096});
  c.heads = 32;
  c.sequence = 1024;
  c.layers = 8;
  c.global_batch = c.dp * one_of({1, 2, 4});
  c.sequence_parallel = random.below(2) == 0;
  c.cluster = R"("base": "dgx-a100-80g", "gpus_per_node": 4, "nics_per_node": 2)";
  if (reduces) c.extra_layout = R"(, "overlap": {"grad_reduce": true})";
  return text_of(c);
}

// All that is left out, together: stamping every pass changes no step by more.
TEST(StampedPasses, LeaveOutNoMoreThanTheBound) {
  constexpr double kBound = 0.001;
  SeededRandom random(360);
  int differ = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string text = random_case(random);
    const testing::PricedCase priced(scenario_from(text));
    const RankGrid grid(priced.scenario.layout);
    const Traffic traffic =
        place_traffic(priced.scenario, priced.listed, grid, priced.pricing->collectives);
    const Stamps stamps =
        find_stamps(priced.scenario, priced.listed, grid, traffic, *priced.pricing);
    const auto some = testing::replay(priced, priced.listed, {.stamps = stamps});
    const auto all =
        testing::replay(priced, priced.listed, {.stamps = testing::everywhere(priced.listed)});
    EXPECT_NEAR(some.step.value(), all.step.value(), kBound * all.step.value()) << text;
    differ += some.tasks == all.tasks ? 0 : 1;
  }
  EXPECT_GT(differ, 100);
}

}  // namespace
}  // namespace stepcast
