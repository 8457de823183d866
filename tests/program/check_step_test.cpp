// SPDX-License-Identifier: Apache-2.0
// A step that hands on what nobody holds, or keeps what nobody takes, is found out with its stage
// and instruction. Each test takes a sound list and spoils it in one way.
#include "program/check_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "cluster/host_link.h"
#include "program/instruction.h"
#include "program/program.h"
#include "scenario_from.h"
#include "schedule/pass.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

using Spoil = std::function<bool(const Instruction&)>;

class StepOf {
 public:
  explicit StepOf(const GptCase& c) : program_(lower(gpt(c))), role_(program_.roles.front()) {}

  std::string fault() const { return fault_of(program_, role_).value_or("sound"); }
  // The first instruction of which this holds is left out, or comes twice.
  void leave_out(const Spoil& is) { role_.instructions.erase(find(is)); }
  void repeat(const Spoil& is) {
    const auto found = find(is);
    role_.instructions.insert(found, Instruction(*found));
  }
  Instruction& first(const Spoil& is) { return *find(is); }

 private:
  std::vector<Instruction>::iterator find(const Spoil& is) {
    const auto found = std::ranges::find_if(role_.instructions, is);
    EXPECT_NE(found, role_.instructions.end());
    return found;
  }
  Program program_;
  Role role_;
};

GptCase two_stages() {
  GptCase c;
  c.pp = 2;
  c.global_batch = 4;
  return c;
}

GptCase sharded() {
  GptCase c;
  c.framework = "fsdp";
  c.attention = "flash";
  c.zero = 3;
  c.dp = 2;
  c.global_batch = 4;
  return c;
}

bool runs(const Instruction& what, Pass pass) {
  const auto* run = what.as<RunPass>();
  return run != nullptr && run->slot.pass == pass;
}
bool runs_forward(const Instruction& what) { return runs(what, Pass::kForward); }
bool runs_backward(const Instruction& what) { return runs(what, Pass::kBackward); }

TEST(StepCheck, FindsNothingInSoundSteps) {
  EXPECT_EQ(StepOf(two_stages()).fault(), "sound");
  EXPECT_EQ(StepOf(sharded()).fault(), "sound");
}

TEST(StepCheck, NamesASendOfWhatNobodyHolds) {
  StepOf step(two_stages());
  step.repeat([](const Instruction& what) { return what.is<Send>(); });
  EXPECT_EQ(step.fault(),
            "stage 0: send of forward, micro-batch 0, chunk 0: nobody holds the activation");
}

TEST(StepCheck, NamesAnActivationThatIsNeverSent) {
  StepOf step(two_stages());
  step.leave_out([](const Instruction& what) { return what.is<Send>(); });
  EXPECT_EQ(step.fault(), "stage 0: an activation or a gradient between chunks is never freed");
}

TEST(StepCheck, NamesABackwardWithoutItsGradient) {
  StepOf step(two_stages());
  step.leave_out([](const Instruction& what) { return what.is<Receive>(); });
  EXPECT_EQ(step.fault(),
            "stage 0: backward of backward, micro-batch 0, chunk 0: nobody holds the "
            "gradient that it reads");
}

TEST(StepCheck, NamesAGradientThatArrivesTwice) {
  StepOf step(two_stages());
  step.repeat([](const Instruction& what) { return what.is<Receive>(); });
  EXPECT_EQ(step.fault(),
            "stage 0: receive of backward, micro-batch 0, chunk 0: the gradient is there");
}

TEST(StepCheck, NamesAPassThatRunsTwiceOrTooEarly) {
  StepOf twice(two_stages());
  twice.repeat(runs_forward);
  EXPECT_NE(twice.fault().find("these blocks have run, or those before them have not"),
            std::string::npos);
  StepOf early(two_stages());
  early.leave_out(runs_forward);
  EXPECT_NE(early.fault().find("nobody holds the activation"), std::string::npos) << early.fault();
}

TEST(StepCheck, NamesAMicroBatchWithoutABackward) {
  StepOf step(sharded());
  step.leave_out([](const Instruction& what) {
    return runs_backward(what) && what.as<RunPass>()->block_begin == 0;
  });
  EXPECT_NE(step.fault(), "sound");
}

TEST(StepCheck, NamesSavedActivationsThatStayInHostMemory) {
  GptCase c;
  c.layers = 6;
  c.extra_layout = R"(, "offload": {"activations": 0.5})";
  const auto comes_back = [](const Instruction& what) {
    const auto* copy = what.as<ActivationCopy>();
    return copy != nullptr && copy->direction == CopyDirection::kFromHost;
  };
  StepOf step(c);
  step.leave_out(comes_back);
  EXPECT_NE(step.fault().find("what it reads lies in host memory"), std::string::npos);
  StepOf twice(c);
  twice.repeat(comes_back);
  EXPECT_NE(twice.fault().find("it does not lie in host memory"), std::string::npos);
}

TEST(StepCheck, NamesGatheredParametersThatAreFreedTwiceOrNever) {
  const auto frees = [](const Instruction& what) {
    return !what.windows.get().frees_parameters.empty();
  };
  StepOf never(sharded());
  never.first(frees).windows.make().frees_parameters = {};
  EXPECT_NE(never.fault().find("these parameters are gathered"), std::string::npos)
      << never.fault();
  StepOf twice(sharded());
  twice.leave_out([](const Instruction& what) {
    const auto* call = what.as<CollectiveCall>();
    return call != nullptr && call->purpose == Purpose::kParameters;
  });
  EXPECT_NE(twice.fault().find("these parameters are not gathered"), std::string::npos)
      << twice.fault();
}

TEST(StepCheck, NamesGradientsThatAreFreedBeforeTheyAreHeld) {
  StepOf step(sharded());
  step.first([](const Instruction& what) { return !what.windows.get().holds_gradients.empty(); })
      .windows.make()
      .holds_gradients.clear();
  EXPECT_NE(step.fault().find("nobody holds these gradients"), std::string::npos) << step.fault();
}

}  // namespace
}  // namespace stepcast
