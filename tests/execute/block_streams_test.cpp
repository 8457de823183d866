// SPDX-License-Identifier: Apache-2.0
// Collectives beside the kernels of their blocks: computing waits where it needs a result, and
// nowhere else. That the numbers are right is shown in closed_loop/block_streams_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "asynchronous_program.h"
#include "core/each.h"
#include "recording_device.h"
#include "threaded_training.h"

namespace stepcast {
namespace {

using testing::asynchronous;
using testing::GptCase;
using testing::on_streams;
using testing::RecordingDevice;

GptCase two_ranks() {
  GptCase c = testing::tiny_local();
  c.global_batch = 4;
  c.tp = 2;
  return c;
}

std::vector<std::string> recorded(const Scenario& scenario, const Program& program) {
  std::vector<std::string> log;
  const RankGrid grid(scenario.layout);
  testing::on_host().run(2, [&](DeviceCommunicator& world) {
    std::vector<std::string> own;
    auto device = std::make_unique<RecordingDevice>(own);
    RecordingDevice& recording = *device;
    RoleRunner runner(scenario, program, grid, RankId(world.rank()), &world, std::move(device), {});
    runner.observe(&recording);
    runner.step();
    if (world.rank() == 0) log = std::move(own);
  });
  return log;
}

// The product for the weight gradient is computed between the reduction's start and the first use
// of what it makes.
TEST(BlockStreams, HoldComputingWhereAResultIsNeeded) {
  const Scenario scenario = testing::gpt(two_ranks());
  const std::vector<std::string> log = recorded(scenario, asynchronous(lower(scenario)));
  const auto product = std::find(log.begin(), log.end(), "mlp_up_wgrad");
  ASSERT_NE(product, log.end());
  ASSERT_GE(product - log.begin(), 2);
  ASSERT_EQ((product - 1)->rfind("post block communication ", 0), 0U) << *(product - 1);
  const std::string number = (product - 1)->substr((product - 1)->rfind(' '));
  EXPECT_EQ(*(product - 2), "mark");  // behind the product for the input gradient
  const auto held = std::find(product, log.end(), "hold" + number);
  ASSERT_NE(held, log.end());
  EXPECT_EQ(*(held + 1), "mlp_norm");
}

// Nobody in the pass waits for the transfer; what comes behind the pass does.
TEST(BlockStreams, EndTogether) {
  std::vector<std::string> log;
  RecordingDevice device(log);
  std::vector<Operation> pass(3, Operation{"operation", Phase::kForward, Gemm{}, {}, {}});
  pass[1].stream = BlockStream::kCommunication;
  pass[1].after[static_cast<std::size_t>(BlockStream::kCompute)] = 0;
  PassStreams streams(device, pass, nullptr);
  streams.before(0);
  streams.behind(0);
  streams.post(1, {});
  streams.before(2);
  streams.behind(2);
  streams.join();
  EXPECT_EQ(log,
            (std::vector<std::string>{"mark", "mark", "post block communication 0", "hold 0"}));
}

TEST(BlockStreams, CostNothingWhereAllIsComputed) {
  const Scenario scenario = testing::gpt(two_ranks());
  for (const std::string& what : each_of(recorded(scenario, lower(scenario)))) {
    EXPECT_NE(what, "mark");
    EXPECT_NE(what.rfind("hold", 0), 0U);
    EXPECT_NE(what.rfind("post block", 0), 0U);
  }
}

TEST(BlockStreams, RunARankAlone) {
  GptCase c = two_ranks();
  c.sequence_parallel = true;
  const Scenario scenario = testing::gpt(c);
  const Program program = asynchronous(lower(scenario));
  const RankGrid grid(scenario.layout);
  RoleRunner runner(scenario, program, grid, RankId(1), nullptr, std::make_unique<HostDevice>(),
                    {});
  for (int s = 0; s < 2; ++s) {
    const double norm = runner.step().gradient_norm;
    EXPECT_TRUE(std::isfinite(norm) && norm > 0);
  }
}

TEST(BlockStreams, KernelsBesideKernelsAreRefused) {
  GptCase c = two_ranks();
  c.tp = 1;
  const Scenario scenario = testing::gpt(c);
  const Program program = on_streams(lower(scenario), [](const Operation& operation) {
    const bool product = std::holds_alternative<Gemm>(operation.work);
    return product ? BlockStream::kCommunication : BlockStream::kCompute;
  });
  const RankGrid grid(scenario.layout);
  EXPECT_THROW(
      RoleRunner(scenario, program, grid, RankId(0), nullptr, std::make_unique<HostDevice>(), {}),
      std::logic_error);
}

}  // namespace
}  // namespace stepcast
