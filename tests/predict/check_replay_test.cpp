// SPDX-License-Identifier: Apache-2.0
// Times and graphs of replays that are spoiled in one way are found out.
#include "predict/check_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "priced_step.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;
using testing::PricedStep;
using testing::source_folders;

Scenario overlapped_step() {  // buckets of gradients are reduced beside the backward
  GptCase c;
  c.dp = 4;
  c.extra_layout = R"(, "overlap": {"grad_reduce": true})";
  return gpt(c);
}

bool reduces(const Instruction& what) {
  const auto* call = what.as<CollectiveCall>();
  return call != nullptr && call->purpose == Purpose::kGradients;
}
bool finds_norm(const Instruction& what) {
  const auto* run = what.as<RunBlock>();
  return run != nullptr && run->kind == BlockKind::kGradientNorm;
}

// The place of the first such instruction.
template <class Is>
std::size_t place_of(const Program& program, Is is) {
  const std::vector<Instruction>& list = program.roles.front().instructions;
  const auto found = std::ranges::find_if(list, is);
  EXPECT_NE(found, list.end());
  return static_cast<std::size_t>(found - list.begin());
}

class SpoiledReplay : public ::testing::Test {
 protected:
  SpoiledReplay()
      : scenario_(overlapped_step()),
        pricing_(std::move(*make_pricing(scenario_, source_folders()))),
        step_(scenario_, *pricing_),
        simulation_(simulate(step_.input, 3).value()) {
    EXPECT_EQ(fault(), "sound");
  }

  std::string fault() const { return broken_cause(step_.input, simulation_).value_or("sound"); }
  sim::Interval& last_reduction() {
    const auto& tasks = simulation_.tasks.back().front();
    return simulation_.replay.tasks[tasks[place_of(step_.program, reduces)].device.index()];
  }
  bool says(const std::string& part) const { return fault().find(part) != std::string::npos; }

  Scenario scenario_;
  std::unique_ptr<Pricing> pricing_;
  PricedStep step_;
  Simulation simulation_;
};

TEST_F(SpoiledReplay, HasAReductionBeforeItsGradients) {
  sim::Interval& run = last_reduction();
  run.start.ps -= 1'000'000'000;
  run.end.ps -= 1'000'000'000;
  EXPECT_TRUE(says("reduce_gradients")) << fault();
}

TEST_F(SpoiledReplay, HasANormBeforeItsReductions) {
  last_reduction().end.ps += 1'000'000'000'000;  // behind all that follows it
  EXPECT_TRUE(says("before the end of stage 0: reduce_gradients")) << fault();
}

TEST_F(SpoiledReplay, EndsBeforeItStarts) {
  sim::Interval& run = last_reduction();
  std::swap(run.start, run.end);
  EXPECT_TRUE(says("it runs from")) << fault();
}

TEST_F(SpoiledReplay, StartsBeforeTime) {
  Simulation& all = simulation_;
  const auto& tasks = all.tasks.front().front();
  const auto first =
      std::ranges::find_if(tasks, [](const InstructionTasks& own) { return own.device.valid(); });
  ASSERT_NE(first, tasks.end());
  all.replay.tasks[first->device_begin.index()].start.ps = -1;
  EXPECT_TRUE(says("it runs from -1")) << fault();
}

// The graph is made of a program that lacks a wait; the waits that are asked for are those of the
// sound one.
TEST_F(SpoiledReplay, LacksThePathOfAWait) {
  for (const auto is : {reduces, finds_norm}) {
    Program without = lower(scenario_);
    Instruction& spoils = without.roles.front().instructions[place_of(without, is)];
    ASSERT_FALSE(spoils.waits.empty());
    spoils.waits = {};
    const PricedStep spoiled(scenario_, *pricing_, std::move(without));
    const SimulationInput& own = spoiled.input;
    const SimulationInput input{
        scenario_,       step_.program, own.grid,       own.traffic, own.symmetry,        own.costs,
        own.host,        own.expand,    own.contention, own.alone,   own.sms_per_channel, kNoStamps,
        own.host_memory, true};
    try {
      static_cast<void>(simulate(input, 3));
      ADD_FAILURE() << spoils.name << " may run too early";
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find("has no path from"), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace stepcast
