// SPDX-License-Identifier: Apache-2.0
// PyTorch's checkpoints end the second forward where backward has all that it reads.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/each.h"
#include "expert_scenarios.h"
#include "program/decoder_layer.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

// Copies of gathered parameters belong to the unit, not to the layer.
std::vector<std::string> names_in(const Block& block, Pass pass, Phase phase) {
  std::vector<std::string> out;
  for (const Operation& operation : block.pass(pass).operations) {
    const std::string name = operation.name;
    if (operation.phase == phase && name != "copy_gathered") out.push_back(name);
  }
  return out;
}

struct Passes {
  std::vector<std::string> first, second;
};
Passes forwards(const std::string& framework, const std::string& training = "", int tp = 1) {
  testing::GptCase c;
  c.framework = framework;
  if (framework == "fsdp") c.zero = 2;
  c.recompute = "full";
  c.attention = "flash";
  c.dropout = 0;
  c.tp = tp;
  c.extra_training = training;
  const Block block = lower_decoder_layer(testing::gpt(c), RecomputeMode::kFull);
  return {names_in(block, Pass::kForward, Phase::kForward),
          names_in(block, Pass::kBackward, Phase::kRecompute)};
}

// Backward reads what the last product reads, and not what it makes: the product, the reduction of
// its parts and the sum with the residual do not run again.
TEST(EarlyStop, LeavesOutTheLastProductAndWhatFollows) {
  for (const int tp : each_of(std::vector{1, 2})) {
    const auto [first, second] = forwards("fsdp", R"(, "compile": true)", tp);
    ASSERT_FALSE(second.empty());
    EXPECT_EQ(second.back(), "activation");
    const std::size_t left_out = first.size() - second.size();
    EXPECT_EQ(left_out, tp == 1 ? 2U : 3U);
    EXPECT_EQ(first[second.size()], "mlp_down");
    EXPECT_TRUE(std::equal(second.begin(), second.end(), first.begin()));
  }
}

// It came with checkpoints that are not reentrant, and torchtitan switched it off. A compiled graph
// has no use for what nobody reads.
TEST(EarlyStop, FollowsTheRelease) {
  const auto runs_all = [](const std::string& training) {
    const auto [first, second] = forwards("fsdp", training);
    return first == second;
  };
  EXPECT_TRUE(runs_all(R"(, "release": "2023-10", "compile": true)"));
  EXPECT_FALSE(runs_all(R"(, "release": "2023-11", "compile": false)"));
  EXPECT_FALSE(runs_all(R"(, "release": "2025-08", "compile": false)"));
  EXPECT_TRUE(runs_all(R"(, "release": "2025-09", "compile": false)"));
  EXPECT_FALSE(runs_all(R"(, "compile": true)"));
}

// Megatron's and DeepSpeed's own checkpoints run the whole layer again.
TEST(EarlyStop, IsNotMegatrons) {
  for (const char* framework : each_of(std::vector{"megatron", "deepspeed"})) {
    const auto [first, second] = forwards(framework);
    EXPECT_EQ(first, second) << framework;
  }
}

// Tokens do not travel back again, nor do their experts' last products run.
TEST(EarlyStop, LeavesOutTheWayBackOfTokens) {
  testing::ExpertCase c;
  c.ep = 4;
  c.zero = 2;
  c.recompute = R"("full")";
  c.more_training = R"(,"compile":true)";
  std::string text = testing::text_of(c);
  text.replace(text.find("megatron"), 8, "fsdp");
  const Scenario scenario = testing::scenario_from(text);
  const Block block = lower_decoder_layer(scenario, RecomputeMode::kFull, BackwardForm::kWhole,
                                          kind_of(scenario, 0));
  const auto count = [&](Pass pass, Phase phase, CollectivePurpose purpose) {
    int found = 0;
    for (const Operation& operation : block.pass(pass).operations) {
      const auto* sent = std::get_if<Collective>(&operation.work);
      found += sent != nullptr && sent->purpose == purpose && operation.phase == phase;
    }
    return found;
  };
  EXPECT_GT(count(Pass::kForward, Phase::kForward, CollectivePurpose::kCombine), 0);
  EXPECT_EQ(count(Pass::kBackward, Phase::kRecompute, CollectivePurpose::kCombine), 0);
  EXPECT_EQ(count(Pass::kBackward, Phase::kRecompute, CollectivePurpose::kDispatch),
            count(Pass::kForward, Phase::kForward, CollectivePurpose::kDispatch));
}

// An adapter of the last product keeps what it reads and what its first matrix made.
TEST(EarlyStop, RunsTheLastProductOfAnAdapterAgain) {
  const auto [first, second] =
      forwards("fsdp", R"(, "mode": "lora", "lora_rank": 8, "compile": true)");
  ASSERT_FALSE(second.empty());
  EXPECT_EQ(second.back(), "adapter_down");
  EXPECT_NE(std::find(second.begin(), second.end(), "mlp_down"), second.end());
  EXPECT_LT(second.size(), first.size());
}

}  // namespace
}  // namespace stepcast
