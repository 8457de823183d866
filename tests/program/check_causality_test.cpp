// SPDX-License-Identifier: Apache-2.0
// Lowered programs have every cause before its effect, and a list that is spoiled in one way is
// found out with the instruction. The check knows operands and buffers; the faults are in waits,
// orders and events.
#include "program/check_causality.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "asynchronous_program.h"
#include "layout/rank_grid.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

using Is = std::function<bool(const Instruction&)>;

GptCase overlapped() {  // Megatron's buckets, reduced beside the backward
  GptCase c;
  c.dp = 4;
  c.extra_layout = R"(, "overlap": {"grad_reduce": true})";
  return c;
}

GptCase sharded() {  // FSDP in two copies of the states
  GptCase c;
  c.framework = "fsdp";
  c.attention = "flash";
  c.zero = 3;
  c.dp = 4;
  c.extra_layout = R"(, "shard_group": 2)";
  return c;
}

GptCase two_stages() {
  GptCase c;
  c.pp = 2;
  return c;
}

GptCase offloaded() {
  GptCase c = sharded();
  c.dp = 1;
  c.extra_layout = R"(, "offload": {"optimizer": 1, "parameters": 1})";
  return c;
}

class Spoiled {
 public:
  explicit Spoiled(const GptCase& c)
      : scenario_(gpt(c)), grid_(scenario_.layout), program_(lower(scenario_)) {
    EXPECT_EQ(fault(), "sound");
  }

  std::string fault() const { return broken_cause(program_, grid_).value_or("sound"); }
  Program& program() { return program_; }
  std::vector<Instruction>& list(std::size_t stage = 0) {
    return program_.roles[stage].instructions;
  }
  // The first instruction of which this holds, from the last one on if `backwards`.
  Instruction& find(const Is& is, std::size_t stage = 0, bool backwards = false) {
    std::vector<Instruction>& all = list(stage);
    const auto first = std::ranges::find_if(all, is);
    EXPECT_NE(first, all.end());
    if (!backwards) return *first;
    return *std::find_if(all.rbegin(), all.rend(), is);
  }

 private:
  Scenario scenario_;
  RankGrid grid_;
  Program program_;
};

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Is moves(Purpose purpose) {
  return [purpose](const Instruction& what) {
    const auto* call = what.as<CollectiveCall>();
    return call != nullptr && call->purpose == purpose;
  };
}
Is runs(Pass pass) {
  return [pass](const Instruction& what) {
    const auto* run = what.as<RunPass>();
    return run != nullptr && run->slot.pass == pass;
  };
}
Is runs(BlockKind kind) {
  return [kind](const Instruction& what) {
    const auto* run = what.as<RunBlock>();
    return run != nullptr && run->kind == kind;
  };
}

#define EXPECT_FOUND(spoiled, part) \
  EXPECT_TRUE(says((spoiled).fault(), part)) << "it says: " << (spoiled).fault()

// A dropped wait.

TEST(Causality, AReductionThatWaitsForNoBackwardIsFound) {
  Spoiled step(overlapped());
  step.find(moves(Purpose::kGradients)).waits = {};
  EXPECT_FOUND(step, "reduce_gradients");
  EXPECT_FOUND(step, "does not wait for stage 0: backward");
}

TEST(Causality, ANormThatWaitsForNoReductionIsFound) {
  Spoiled step(overlapped());
  step.find(runs(BlockKind::kGradientNorm)).waits = {};
  EXPECT_FOUND(step, "does not wait for stage 0: reduce_gradients");
}

TEST(Causality, AForwardThatWaitsForNoGatherIsFound) {
  Spoiled step(sharded());
  step.find(runs(Pass::kForward)).waits = {};
  EXPECT_FOUND(step, "forward");
  EXPECT_FOUND(step, "does not wait for stage 0: gather_root");
}

TEST(Causality, ASumOverCopiesThatWaitsForNoReductionIsFound) {
  Spoiled step(sharded());
  step.find([](const Instruction& what) { return what.stream == Stream::kReduceCopies; })
      .waits = {};
  EXPECT_FOUND(step, "reduce_copies");
}

TEST(Causality, AForwardBeforeItsActivationIsFound) {
  Spoiled step(two_stages());
  step.find(runs(Pass::kForward), 1).waits = {};
  for (Instruction& what : step.list(1)) {
    if (what.is<HostWait>()) what.waits = {};
  }
  EXPECT_FOUND(step, "stage 1: forward");
  EXPECT_FOUND(step, "does not wait for stage 1: receive");
}

TEST(Causality, ASendBeforeItsForwardIsFound) {
  Spoiled step(two_stages());
  step.find([](const Instruction& what) { return what.is<Send>(); }).waits = {};
  EXPECT_FOUND(step, "send");
}

TEST(Causality, ACopyOfGradientsThatWaitsForNothingIsFound) {
  Spoiled step(offloaded());
  step.find([](const Instruction& what) { return what.stream == Stream::kCopyOut; }).waits = {};
  EXPECT_FOUND(step, "offload_gradients");
}

// A swapped order.

TEST(Causality, AReductionBeforeTheLastContributionIsFound) {
  GptCase c = overlapped();
  c.extra_layout = "";  // reduced behind all passes
  Spoiled step(c);
  std::vector<Instruction>& list = step.list();
  const auto reduction = std::ranges::find_if(list, moves(Purpose::kGradients));
  const auto last = std::find_if(list.begin(), reduction, runs(Pass::kBackward));
  ASSERT_NE(last, reduction);
  std::iter_swap(reduction, last);
  EXPECT_FOUND(step, "used before they are reduced");
}

TEST(Causality, AnOptimizerBeforeTheReductionIsFound) {
  GptCase c = overlapped();
  c.extra_layout = "";
  Spoiled step(c);
  Instruction& update = step.find(runs(BlockKind::kUpdate), 0, true);
  std::swap(update.work, step.find(moves(Purpose::kGradients)).work);
  EXPECT_FOUND(step, "used before they are reduced");
}

// A missing event.

TEST(Causality, AKernelThatMissesTheEventOfItsMessageIsFound) {
  GptCase c;
  c.tp = 2;
  Spoiled step(c);
  step.program() = testing::asynchronous(step.program());
  EXPECT_EQ(step.fault(), "sound");
  bool spoiled = false;
  for (Block& block : step.program().blocks) {
    for (Operation& what : block.pass(Pass::kForward).operations) {
      auto& message = what.after[static_cast<std::size_t>(BlockStream::kCommunication)];
      spoiled = spoiled || message >= 0;
      message = -1;
    }
  }
  EXPECT_TRUE(spoiled);
  EXPECT_FOUND(step, "does not wait for");
}

// The step before: an update of this step's gradients is not over when the next one begins to
// gather, if the gather waits for what was there all along.
TEST(Causality, AGatherThatDoesNotWaitForTheLastUpdateIsFound) {
  Spoiled step(sharded());
  Instruction& gather = step.find(moves(Purpose::kParameters));
  std::vector<Instruction>& list = step.list();
  list.insert(list.begin(), {Stream::kCopyIn, "nothing", HostWait{}});
  for (std::size_t i = 1; i < list.size(); ++i) {
    for (InstructionIndex& wait : list[i].waits) ++wait;
  }
  static_cast<void>(gather);
  Instruction& moved = step.find(moves(Purpose::kParameters));
  moved.waits = {};
  moved.waits.add(0);
  EXPECT_FOUND(step, "does not wait for the step before");
}

// Times of a step that ran.
TEST(Causality, ASpanThatBeginsBeforeItsCauseIsFound) {
  const Scenario scenario = gpt(overlapped());
  const Program program = lower(scenario);
  const Role& role = program.roles.front();
  const DataFlow flow = data_flow(program, role, RankGrid(scenario.layout));
  std::vector<RecordedSpan> spans;
  for (std::size_t i = 0; i < role.instructions.size(); ++i) {
    const auto at = static_cast<double>(i);
    spans.push_back({at, at + 1});
  }
  EXPECT_EQ(broken_cause(role, flow, spans), std::nullopt);
  const auto reduction =
      static_cast<std::size_t>(std::ranges::find_if(role.instructions, moves(Purpose::kGradients)) -
                               role.instructions.begin());
  spans[reduction].start -= 0.5;
  EXPECT_TRUE(says(broken_cause(role, flow, spans).value_or(""), "reduce_gradients"));
  spans[reduction].start = -1;
  EXPECT_TRUE(says(broken_cause(role, flow, spans).value_or(""), "runs from -1"));
}

}  // namespace
}  // namespace stepcast
