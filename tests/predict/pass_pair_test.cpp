// SPDX-License-Identifier: Apache-2.0
// A forward beside a backward of another micro-batch: whose tokens travel while the other computes.
#include "program/pass_pair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "core/each.h"
#include "core/seeded_random.h"
#include "expert_scenarios.h"
#include "predict/block_replay.h"
#include "predict/prediction.h"
#include "program/program.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

using testing::ExpertCase;
using testing::with_experts;

Operation compute() { return {"kernel", Phase::kForward, Gemm{}, {}, {}}; }
Operation experts() { return {"experts", Phase::kForward, GroupedGemm{}, {}, {}}; }
Operation exchange(CollectivePurpose purpose) {
  Collective collective{};
  collective.purpose = purpose;
  return {"exchange", Phase::kForward, collective, {}, {}};
}

// Work before, the way there, experts, the way back, the rest.
std::vector<Operation> pass() {
  return {compute(), exchange(CollectivePurpose::kDispatch), experts(),
          exchange(CollectivePurpose::kCombine), compute()};
}

using Times = std::array<double, 5>;

// Follows pass_pair.h, each stream in turn.
double closed_form(const Times& f, const Times& b) {
  const double before_b = b[0], before_f = before_b + f[0];
  const double there_b = before_b + b[1];
  const double there_f = std::max(before_f, there_b) + f[1];
  const double experts_b = std::max(before_f, there_b) + b[2];
  const double back_b = std::max(experts_b, there_f) + b[3];
  const double experts_f = std::max(experts_b, there_f) + f[2];
  const double back_f = std::max(experts_f, back_b) + f[3];
  const double rest_b = std::max(experts_f, back_b) + b[4];
  return std::max(rest_b, back_f) + f[4];
}

double replayed(const Times& f, const Times& b) {
  const std::vector<Operation> order = issue_in_turn(pass(), pass());
  // Forward and backward take turns piece by piece, the backward first.
  std::vector<PricedOperation> priced;
  const std::array<double, 10> times{b[0], b[1], f[0], f[1], b[2], b[3], f[2], f[3], b[4], f[4]};
  for (std::size_t i = 0; i < order.size(); ++i) {
    RunCost cost;
    cost.gpu = cost.floor = Seconds(times[i]);
    priced.push_back({&order[i], cost});
  }
  return replay_block(priced).gpu.value();
}

TEST(PassPair, TakesTheLongerOfWhatRunsBesideEachOther) {
  EXPECT_EQ(replayed({4, 1, 4, 1, 4}, {4, 1, 4, 1, 4}), 24);  // every exchange is hidden
  EXPECT_EQ(replayed({0, 3, 0, 3, 0}, {0, 3, 0, 3, 0}), 12);  // one link for all four
  SeededRandom random(17);
  for (int i = 0; i < 500; ++i) {
    Times f{}, b{};
    for (double& time : f) time = static_cast<double>(random.below(8));
    for (double& time : b) time = static_cast<double>(random.below(8));
    EXPECT_NEAR(replayed(f, b), closed_form(f, b), 1e-9);
  }
}

// The way back waits for the input gradients of B's experts alone; their weight gradients take the
// time `late` behind them, and only what the computing stream issues next waits for it.
double delayed_form(const Times& f, const Times& b, double late) {
  const double before_b = b[0], before_f = before_b + f[0];
  const double there_b = before_b + b[1];
  const double there_f = std::max(before_f, there_b) + f[1];
  const double experts_b = std::max(before_f, there_b) + b[2];
  const double back_b = std::max(experts_b, there_f) + b[3];
  const double experts_f = std::max(experts_b + late, there_f) + f[2];
  const double back_f = std::max(experts_f, back_b) + f[3];
  const double rest_b = std::max(experts_f, back_b) + b[4];
  return std::max(rest_b, back_f) + f[4];
}

double replayed_late(const Times& f, const Times& b, double late, bool delays) {
  std::vector<Operation> backward = pass();
  Operation weights = experts();
  weights.phase = Phase::kWeightGradient;
  backward.insert(backward.begin() + 3, weights);
  const std::vector<Operation> order = issue_in_turn(pass(), backward, delays);
  const std::array<double, 11> behind{b[0], b[1], f[0], f[1], b[2], b[3],
                                      late, f[2], f[3], b[4], f[4]};
  const std::array<double, 11> before{b[0], b[1], f[0], f[1], b[2], late,
                                      b[3], f[2], f[3], b[4], f[4]};
  std::vector<PricedOperation> priced;
  for (std::size_t i = 0; i < order.size(); ++i) {
    RunCost cost;
    cost.gpu = cost.floor = Seconds((delays ? behind : before)[i]);
    priced.push_back({&order[i], cost});
  }
  return replay_block(priced).gpu.value();
}

TEST(PassPair, DelayedWeightGradientsRunBesideTheWayBack) {
  // The way back of B takes 4 beside 3 of weight gradients and 1 of F's experts.
  EXPECT_EQ(replayed_late({0, 0, 1, 0, 0}, {0, 0, 2, 4, 0}, 3, true), 6);
  EXPECT_EQ(replayed_late({0, 0, 1, 0, 0}, {0, 0, 2, 4, 0}, 3, false), 9);
  SeededRandom random(23);
  for (int i = 0; i < 500; ++i) {
    Times f{}, b{};
    for (double& time : f) time = static_cast<double>(random.below(8));
    for (double& time : b) time = static_cast<double>(random.below(8));
    const auto late = static_cast<double>(random.below(8));
    Times whole = b;
    whole[2] += late;
    EXPECT_NEAR(replayed_late(f, b, late, true), delayed_form(f, b, late), 1e-9);
    EXPECT_NEAR(replayed_late(f, b, late, false), closed_form(f, whole), 1e-9);
  }
}

TEST(PassPair, EventsOfAPassAreThoseThatItHadAlone) {
  std::vector<Operation> forward = pass();
  Operation beside = compute();
  beside.stream = BlockStream::kCommunication;
  beside.after[static_cast<std::size_t>(BlockStream::kCompute)] = 4;
  forward.push_back(beside);
  const std::vector<Operation> order = issue_in_turn(forward, pass());
  ASSERT_EQ(order.size(), 11U);
  EXPECT_EQ(order[10].stream, BlockStream::kCommunication);
  EXPECT_EQ(order[10].after[static_cast<std::size_t>(BlockStream::kCompute)], 9);
}

ExpertCase overlapped(int pp, int virtual_stages, const char* schedule = "interleaved") {
  ExpertCase c;
  c.layers = 8;
  c.pp = pp;
  c.virtual_stages = virtual_stages;
  c.schedule = pp > 1 ? schedule : "1f1b";
  c.dp = 8;
  c.ep = 8;
  c.global_batch = 64;
  c.more_layout = R"(,"overlap":{"ep":true,"pp":)" + std::string(pp > 1 ? "true" : "false") +
                  R"(,"grad_reduce":false,"param_gather":false})";
  return c;
}

// Warm-up passes of interleaved 1F1B run alone, and one more, and as many at the end.
TEST(PassPair, AllButTheFirstForwardsAndTheLastBackwardsHaveAPartner) {
  for (const auto& [pp, chunks] : {std::pair(1, 1), std::pair(2, 2), std::pair(4, 2)}) {
    const Scenario scenario = with_experts(overlapped(pp, chunks));
    const Program program = lower(scenario);
    for (const Role& role : each_of(program.roles)) {
      std::int64_t pairs = 0;
      for (std::size_t i = 0; i < role.instructions.size(); ++i) {
        const auto* run = role.instructions[i].as<RunPass>();
        if (run == nullptr || !run->beside || run->slot.pass == Pass::kForward) continue;
        ++pairs;
        const auto* next = role.instructions[i + 1].as<RunPass>();
        ASSERT_NE(next, nullptr);
        EXPECT_EQ(next->slot, *run->beside);
        EXPECT_EQ(next->beside, run->slot);
        EXPECT_NE(next->slot.micro_batch, run->slot.micro_batch);
      }
      const std::int64_t warm_up = pp > 1 ? 2 * (pp - role.stage - 1) + (chunks - 1) * pp : 0;
      EXPECT_EQ(pairs, scenario.micro_batches() * chunks - warm_up - 1) << pp;
    }
  }
}

// DualPipe's pairs are its own (schedule/dual_pipe_order.cpp): two in each round of its fourth
// step, one in each of the fifth. The weight gradients of a pair follow by themselves.
TEST(PassPair, DualPipePairsADirectionWithTheOther) {
  for (const char* schedule : {"dualpipe", "dualpipev"}) {
    const Scenario scenario = with_experts(overlapped(4, 2, schedule));
    const Program program = lower(scenario);
    const bool mirrored = rules_of(scenario.layout.schedule).placement == Placement::kMirrored;
    for (const Role& role : each_of(program.roles)) {
      std::int64_t pairs = 0;
      for (std::size_t i = 0; i < role.instructions.size(); ++i) {
        if (!leads_pair(role.instructions[i])) continue;
        ++pairs;
        const Slot own = role.instructions[i].as<RunPass>()->slot;
        const auto* next = role.instructions[i + 1].as<RunPass>();
        ASSERT_NE(next, nullptr);
        EXPECT_EQ(next->beside, own);
        EXPECT_NE(next->slot.chunk, own.chunk);
        std::size_t after = i + 2;
        while (!role.instructions[after].is<RunPass>()) ++after;
        EXPECT_EQ(role.instructions[after].as<RunPass>()->slot,
                  (Slot{Pass::kWeightGradient, own.micro_batch, own.chunk}));
      }
      const std::int64_t ahead = mirrored ? std::min(role.stage, 3 - role.stage) : role.stage;
      const std::int64_t behind = (mirrored ? 2 : 4) - ahead - 1;
      const std::int64_t each = scenario.micro_batches() / (mirrored ? 2 : 1);
      EXPECT_EQ(pairs, 2 * (each - 2 * behind - ahead - 1) + behind) << schedule << role.stage;
    }
  }
}

Prediction forecast(const ExpertCase& c) {
  auto prediction = predict(with_experts(c), testing::source_folders());
  EXPECT_TRUE(prediction.has_value());
  return prediction ? std::move(*prediction) : Prediction{};
}

// Sooner than one pass after the other, and by no more than what is exposed there. The parts still
// add up to the step.
TEST(PassPair, HidesExchangesAndNothingElse) {
  for (const auto& [pp, chunks, schedule] :
       {std::tuple(1, 1, "1f1b"), std::tuple(2, 2, "interleaved"), std::tuple(2, 2, "dualpipe"),
        std::tuple(2, 2, "dualpipev")}) {
    ExpertCase c = overlapped(pp, chunks, schedule);
    c.hidden = 4096;
    c.heads = 32;
    c.sequence = 4096;
    c.ffn = 2048;
    c.capacity_factor = 1;
    const Prediction beside = forecast(c);
    c.more_layout.replace(c.more_layout.find("true"), 4, "false");
    const Prediction after = forecast(c);
    const Seconds hidden = after.step_time - beside.step_time;
    EXPECT_GT(hidden, 0.4 * after.time.exposed_ep) << schedule;
    EXPECT_LT(hidden, after.time.exposed_ep) << schedule;
    EXPECT_NEAR(beside.time.total().value(), beside.step_time.value(),
                1e-9 * beside.step_time.value());
    EXPECT_EQ(beside.flops, after.flops);
  }
}

// The replay of the pair, operation by operation, takes as long as its one activity.
TEST(PassPair, TakesTheTimesOfItsOperations) {
  SeededRandom random(36);
  int pairs = 0;
  for (int i = 0; i < 8; ++i) {
    const bool staged = random.below(2) == 0;
    ExpertCase c =
        overlapped(staged ? 2 : 1, staged ? 2 : 1, i % 3 > 0 ? "dualpipe" : "interleaved");
    c.hidden = random.below(2) == 0 ? 512 : 4096;  // the host binds, and does not
    c.heads = 32;
    c.ep = random.below(2) == 0 ? 4 : 8;
    c.global_batch = 32;
    const Scenario scenario = with_experts(c);
    for (const Role& role : lower(scenario).roles) {
      pairs += static_cast<int>(std::ranges::count_if(role.instructions, leads_pair));
    }
    const auto one = predict(scenario, testing::source_folders(), {.contention = false});
    const auto expanded =
        predict(scenario, testing::source_folders(), {.expand = true, .contention = false});
    ASSERT_TRUE(one.has_value() && expanded.has_value());
    const double step = one->step_time.value();
    EXPECT_NEAR(expanded->step_time.value(), step, 1e-9 * step + 1e-7) << testing::text_of(c);
    EXPECT_GT(expanded->simulated_tasks, 4 * one->simulated_tasks);
    EXPECT_NEAR(expanded->time.total().value(), step, 1e-9 * step + 1e-7);
  }
  EXPECT_GT(pairs, 8);
}

// Experts of 16 GPUs in nodes of eight, and long exchanges.
ExpertCase across_two_nodes(ExpertCase c) {
  c.cluster = "dgx-a100-80g";
  c.dp = 16;
  c.ep = 16;
  c.hidden = 4096;
  c.heads = 32;
  c.sequence = 4096;
  return c;
}

// If the exchange leaves the node, it meets the activations of stages on the same NICs: the pair is
// stamped, loads them and loses time.
TEST(PassPair, MeetsTransfersBetweenStagesOnTheNics) {
  ExpertCase c = across_two_nodes(overlapped(2, 2));
  const Scenario scenario = with_experts(c);
  const auto shared = predict(scenario, testing::source_folders());
  const auto alone = predict(scenario, testing::source_folders(), {.contention = false});
  ASSERT_TRUE(shared.has_value() && alone.has_value());
  EXPECT_GT(shared->time.exposed_ep, alone->time.exposed_ep);
  EXPECT_GT(shared->step_time.value(), alone->step_time.value());
  const auto expanded = predict(scenario, testing::source_folders(), {.expand = true});
  ASSERT_TRUE(expanded.has_value());
  EXPECT_NEAR(expanded->step_time.value(), shared->step_time.value(),
              1e-9 * shared->step_time.value() + 1e-7);
}

// Long exchanges across nodes hide all of a small shared expert: its kernels leave the step, which
// is then no longer than without it but for the sums that join it.
TEST(SharedExpert, RunsBesideTheExchanges) {
  ExpertCase c = across_two_nodes({});
  c.capacity_factor = 1;  // the host knows the sizes
  c.global_batch = 128;  // the gradients of a shared expert are reduced once in eight micro-batches
  const Prediction none = forecast(c);
  c.shared_ffn = 1024;
  const Prediction before = forecast(c);
  c.more_layout = R"(,"overlap":{"shared_experts":true})";
  const Prediction beside = forecast(c);
  const Seconds whole = before.step_time - none.step_time;
  EXPECT_LT(beside.step_time - none.step_time, 0.5 * whole);
  EXPECT_GT(beside.step_time.value(), none.step_time.value());
  EXPECT_EQ(beside.flops, before.flops);
  EXPECT_NEAR(beside.time.total().value(), beside.step_time.value(),
              1e-9 * beside.step_time.value());
  const auto expanded =
      predict(with_experts(c), testing::source_folders(), {.expand = true, .contention = false});
  const auto one = predict(with_experts(c), testing::source_folders(), {.contention = false});
  ASSERT_TRUE(expanded.has_value() && one.has_value());
  EXPECT_NEAR(expanded->step_time.value(), one->step_time.value(),
              1e-9 * one->step_time.value() + 1e-7);
}

}  // namespace
}  // namespace stepcast
