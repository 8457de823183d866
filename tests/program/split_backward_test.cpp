// SPDX-License-Identifier: Apache-2.0
// Blocks whose input gradients and weight gradients are passes apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/each.h"
#include "layout/pipeline.h"
#include "program/decoder_layer.h"
#include "program/embedding_block.h"
#include "program/head_block.h"
#include "program/instruction.h"
#include "program/liveness.h"
#include "program/program.h"
#include "program/rank_stream.h"
#include "scenario_from.h"
#include "schedule/order_check.h"
#include "schedule/schedule.h"
#include "split_orders.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

struct Lowered {
  Block whole, split;
};

std::vector<Lowered> blocks(const GptCase& c, RecomputeMode mode) {
  const Scenario scenario = gpt(c);
  const auto of = [](auto lower) {
    return Lowered{lower(BackwardForm::kWhole), lower(BackwardForm::kSplit)};
  };
  return {of([&](BackwardForm form) { return lower_decoder_layer(scenario, mode, form); }),
          of([&](BackwardForm form) { return lower_embedding(scenario, form); }),
          of([&](BackwardForm form) { return lower_head(scenario, form); })};
}

std::vector<Lowered> all_blocks() {
  std::vector<Lowered> out;
  for (const char* attention : {"flash", "unfused"}) {
    for (const char* framework : {"megatron", "native"}) {
      for (const bool sequence_parallel : {false, true}) {
        GptCase c;
        c.attention = attention;
        c.framework = framework;
        c.tp = sequence_parallel ? 2 : 1;
        c.sequence_parallel = sequence_parallel;
        for (const RecomputeMode mode :
             {RecomputeMode::kNone, RecomputeMode::kSelective, RecomputeMode::kFull}) {
          for (Lowered& both : blocks(c, mode)) out.push_back(std::move(both));
        }
      }
    }
  }
  return out;
}

double flops(const Block& block, Pass pass) {
  double sum = 0;
  for (const Operation& operation : block.pass(pass).operations) {
    sum += flops_of(operation).value();
  }
  return sum;
}

bool is_weight_gradient(const Operation& operation) {
  const auto* gemm = std::get_if<Gemm>(&operation.work);
  return gemm != nullptr && gemm->role == GemmRole::kWeightGradient;
}

TEST(SplitBackward, DoesTheWorkOfTheWhole) {
  for (const auto& [whole, split] : each_of(all_blocks())) {
    EXPECT_DOUBLE_EQ(flops(split, Pass::kInputGradient) + flops(split, Pass::kWeightGradient),
                     flops(whole, Pass::kBackward));
    EXPECT_EQ(split.pass(Pass::kInputGradient).operations.size() +
                  split.pass(Pass::kWeightGradient).operations.size(),
              whole.pass(Pass::kBackward).operations.size());
    EXPECT_TRUE(split.pass(Pass::kBackward).operations.empty());
    EXPECT_TRUE(whole.pass(Pass::kWeightGradient).operations.empty());
  }
}

TEST(SplitBackward, LeavesProductsWithWeightsAndCommunicationWhereTheyBelong) {
  for (const auto& [whole, split] : each_of(all_blocks())) {
    for (const Operation& operation : each_of(split.pass(Pass::kInputGradient).operations)) {
      EXPECT_FALSE(is_weight_gradient(operation)) << operation.name;
    }
    EXPECT_FALSE(split.pass(Pass::kWeightGradient).operations.empty());
    for (const Operation& operation : each_of(split.pass(Pass::kWeightGradient).operations)) {
      EXPECT_FALSE(std::holds_alternative<Collective>(operation.work)) << operation.name;
      EXPECT_EQ(operation.phase, Phase::kWeightGradient);
      const auto gemm = product_of(operation.work);
      EXPECT_TRUE(!gemm || is_weight_gradient(operation)) << operation.name;
    }
  }
}

// A weight's gradient finds what it reads from the passes before, and leaves nothing of it behind.
TEST(SplitBackward, KeepsWhatWeightGradientsReadUntilTheyRun) {
  for (const auto& [whole, split] : each_of(all_blocks())) {
    const BlockLives lives = trace_lives(split);
    std::set<BufferId> dead;
    for (const Pass pass : {Pass::kForward, Pass::kInputGradient}) {
      for (const OperationLives& operation : lives.pass(pass)) {
        dead.insert(operation.deaths.begin(), operation.deaths.end());
      }
    }
    for (const Operation& operation : each_of(split.pass(Pass::kWeightGradient).operations)) {
      for (const BufferId id : operation.reads) EXPECT_FALSE(dead.contains(id));
    }
    for (std::size_t i = 0; i < kMemoryCategories; ++i) {
      EXPECT_EQ(split.pass(Pass::kInputGradient).memory.after[i] +
                    split.pass(Pass::kWeightGradient).memory.after[i],
                whole.pass(Pass::kBackward).memory.after[i]);
    }
    EXPECT_EQ(split.pass(Pass::kForward).memory.after, whole.pass(Pass::kForward).memory.after);
  }
}

// Input and output gradient of every product with a weight outlive a layer's input gradients: the
// input of queries, keys and values, of the output, of both of the MLP's, and their four gradients.
TEST(SplitBackward, HoldsALayersInputsAndGradientsBetweenItsPasses) {
  GptCase c;
  c.attention = "flash";
  c.dropout = 0;
  const Block layer = lower_decoder_layer(gpt(c), RecomputeMode::kNone, BackwardForm::kSplit);
  const std::int64_t sbh = c.sequence * c.micro_batch * c.hidden;
  const auto between = [&](Pass pass) { return layer.pass(pass).memory.after; };
  ByteCount held = 0;
  for (const Pass pass : {Pass::kForward, Pass::kInputGradient}) held += total(between(pass));
  // The layer's input and its output's gradient come from outside and are not counted as born: the
  // former is gone with the first norm, the latter is one of the gradients that stay. In units of
  // sbh numbers of 2 bytes: inputs 1 + 1 + 1 + 4, gradients 3 + 1 + 4 + 1 with the output's.
  const std::int64_t inputs = 1 + 1 + 1 + 4, gradients = 3 + 1 + 4 + 1;
  // A forward counts its output, and an input gradient its own; both are handed on.
  const std::int64_t handed_on = 2, from_outside = 2;
  EXPECT_EQ(held, 2 * sbh * (inputs + gradients + handed_on - from_outside));
}

GptCase pipeline() {
  GptCase c;
  c.pp = 2;
  c.dp = 2;
  c.global_batch = 8;
  c.framework = "native";
  return c;
}

TEST(SplitBackward, OrdersAreAcceptedAndRunAsGiven) {
  const Scenario scenario = gpt(pipeline());
  const std::vector<StageOrder> orders = testing::split_orders(scenario);
  EXPECT_TRUE(
      check_orders(orders, pipeline_of(scenario.layout, scenario.micro_batches()), "").empty());
  const Program program = lower(scenario, orders);
  for (const Role& role : each_of(program.roles)) {
    StageOrder run;
    for (const Instruction& what : role.instructions) {
      const auto* pass = what.as<RunPass>();
      if (pass == nullptr) continue;
      if (run.empty() || !(run.back() == pass->slot)) run.push_back(pass->slot);  // else a bucket's
    }
    EXPECT_EQ(run, orders[static_cast<std::size_t>(role.stage)]);
  }
}

TEST(SplitBackward, WeightGradientsReceiveAndSendNothingAndAreReducedAtTheEnd) {
  GptCase c = pipeline();
  c.zero = 1;
  const Scenario scenario = gpt(c);
  const Program program = lower(scenario, testing::split_orders(scenario));
  const auto last = static_cast<std::int32_t>(scenario.micro_batches()) - 1;
  for (const Role& role : each_of(program.roles)) {
    int reductions = 0;
    for (const Instruction& what : role.instructions) {
      if (const StageTransfer* moved = what.transfer()) {
        EXPECT_NE(moved->slot.pass, Pass::kWeightGradient);
      }
      if (what.stream != Stream::kReduce) continue;
      ++reductions;
      const Slot& after = *role.instructions[static_cast<std::size_t>(*what.waits.begin())].slot();
      EXPECT_EQ(after.pass, Pass::kWeightGradient);
      EXPECT_EQ(after.micro_batch, last);
    }
    EXPECT_GT(reductions, 0);
  }
}

// An order may leave some backward passes whole: they are the two passes in a row.
TEST(SplitBackward, RunsAWholeBackwardOfSplitBlocksInARow) {
  const Scenario scenario = gpt(pipeline());
  std::vector<StageOrder> orders = make_schedule(scenario.layout, scenario.micro_batches());
  orders[1] = testing::split_orders(scenario)[1];
  const Program program = lower(scenario, orders);
  std::vector<Slot> passes;
  for (const Instruction& what : program.roles[0].instructions) {
    if (const auto* run = what.as<RunPass>()) passes.push_back(run->slot);
  }
  int pairs = 0;
  for (std::size_t i = 0; i + 1 < passes.size(); ++i) {
    if (passes[i].pass != Pass::kInputGradient) continue;
    EXPECT_EQ(passes[i + 1].pass, Pass::kWeightGradient);
    EXPECT_EQ(passes[i + 1].micro_batch, passes[i].micro_batch);
    ++pairs;
  }
  EXPECT_EQ(pairs, scenario.micro_batches());
}

}  // namespace
}  // namespace stepcast
