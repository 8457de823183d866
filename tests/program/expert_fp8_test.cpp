// SPDX-License-Identifier: Apache-2.0
// Products of experts in fp8: what they read are copies of one byte an element (docs/fp8.md).
#include <gtest/gtest.h>

#include <string>

#include "expert_scenarios.h"
#include "program/decoder_layer.h"
#include "program/layer_kind.h"

namespace stepcast {
namespace {

Block expert_layer(const std::string& precision) {
  testing::ExpertCase c;
  c.dp = 1;
  c.more_training = R"(,"precision":")" + precision + R"(")";
  const Scenario scenario = testing::with_experts(c);
  return lower_decoder_layer(scenario, RecomputeMode::kNone, BackwardForm::kWhole,
                             kind_of(scenario, 0));
}

TEST(ExpertsInFp8, EveryProductReadsCopies) {
  const Block block = expert_layer("fp8");
  int products = 0;
  for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
    for (const Operation& operation : block.pass(pass).operations) {
      const auto* product = std::get_if<GroupedGemm>(&operation.work);
      if (product == nullptr) continue;
      ++products;
      EXPECT_EQ(product->input, DataType::kFp8) << operation.name;
      for (const BufferId id : operation.reads) {
        EXPECT_EQ(block.buffers[id.index()].type, DataType::kFp8) << operation.name;
      }
    }
  }
  EXPECT_EQ(products, 6);  // two forward, each with the gradients of its input and of its weights
}

// Rows that enter the two products are kept in one byte an element in place of two.
TEST(ExpertsInFp8, KeepsCopiesInPlaceOfRows) {
  const auto saved = [](const Block& block) {
    return block.pass(Pass::kForward)
        .memory.after[static_cast<std::size_t>(MemoryCategory::kActivations)];
  };
  const Block narrow = expert_layer("fp8"), wide = expert_layer("bf16");
  const testing::ExpertCase c;
  const std::int64_t rows = c.sequence * c.top_k;
  const auto less = static_cast<double>(rows * (c.hidden + c.ffn));
  EXPECT_NEAR(static_cast<double>(saved(wide) - saved(narrow)), less, 0.01 * less);  // scales
  const auto left = [&](const Block& block) {
    return saved(block) + block.pass(Pass::kBackward)
                              .memory.after[static_cast<std::size_t>(MemoryCategory::kActivations)];
  };
  EXPECT_EQ(left(narrow), left(wide));  // no copy outlives the step, and none dies unborn
}

// A layer of mxfp8 on B200, whose kernels are fused or not.
testing::ExpertCase on_b200() {
  testing::ExpertCase c;
  c.ffn = 768;
  c.cluster = "dgx-b200";
  c.ep = 8;
  c.dispatcher = "hybridep";
  return c;
}

Block blocks_of_32(bool fused, const std::string& more_moe = "") {
  testing::ExpertCase c = on_b200();
  c.more_moe = more_moe + (fused ? R"(,"fused_mlp":true)" : "");
  c.more_training = R"(,"precision":"fp8","fp8_recipe":"mxfp8")";
  const Scenario scenario = testing::with_experts(c);
  return lower_decoder_layer(scenario, RecomputeMode::kNone, BackwardForm::kWhole,
                             kind_of(scenario, 0));
}

// Traffic of activations, and of casts of rows of so many columns.
double traffic(const Block& block, Pass pass, std::int64_t columns) {
  const testing::ExpertCase c = on_b200();
  double bytes = 0;
  for (const Operation& operation : block.pass(pass).operations) {
    const auto* cast = std::get_if<Cast>(&operation.work);
    const auto* activation = std::get_if<ExpertActivation>(&operation.work);
    if (cast != nullptr && cast->size.elements == c.sequence * c.top_k * columns) {
      bytes += cast->size.bytes;
    }
    if (activation != nullptr) bytes += activation->size.bytes;
  }
  return bytes;
}

// The product reads and writes what the activation and its cast did: in 16 bits two operands and
// one result, once more for the cast, and two copies with their scales.
TEST(ExpertsInFp8, FusedKernelsActivateAndCast) {
  const testing::ExpertCase c = on_b200();
  const double rows = static_cast<double>(c.sequence * c.top_k), f = c.ffn;
  const double copies = 2 * (1 + 1.0 / 32);
  const Block apart = blocks_of_32(false), fused = blocks_of_32(true);
  EXPECT_EQ(traffic(apart, Pass::kForward, c.ffn), rows * f * (6 + 2 + copies));
  EXPECT_EQ(traffic(fused, Pass::kForward, c.ffn), 0);
  EXPECT_EQ(traffic(apart, Pass::kBackward, 2 * c.ffn), rows * f * (10 + 2 * (2 + copies)));
  EXPECT_EQ(traffic(fused, Pass::kBackward, 2 * c.ffn), 0);
  EXPECT_EQ(traffic(fused, Pass::kForward, c.hidden),
            traffic(apart, Pass::kForward, c.hidden) - rows * f * 6);  // casts of rows remain
  const auto kept = [](const Block& block) {
    return total(block.pass(Pass::kForward).memory.after);
  };
  EXPECT_EQ(kept(fused), kept(apart));
}

// A stash has room for what waits for backward, the rank's buffers for what is worked on: input and
// activation in a byte and its scale, the first product's output in two. Weights and map of rows
// stay whole.
TEST(ExpertsInFp8, StashKeepsLessThanBuffersHold) {
  const testing::ExpertCase c = on_b200();
  const std::int64_t rows = c.sequence * c.top_k;
  const std::int64_t saved = rows * (c.hidden + c.ffn) * 33 / 32 + 2 * rows * 2 * c.ffn;
  const std::int64_t beside = (4 + 8) * rows;
  const auto kept = [](const Block& block) {
    return total(block.pass(Pass::kForward).memory.after);
  };
  const Block plain = blocks_of_32(true);
  const Block room = blocks_of_32(true, R"(,"rank_capacity_factor":1.5)");
  const Block stash = blocks_of_32(true, R"(,"rank_capacity_factor":1.5,"stash_factor":1.25)");
  EXPECT_EQ(kept(room) - kept(plain), (saved + beside) / 2);
  EXPECT_EQ(kept(stash) - kept(plain), saved / 4 + beside / 2);
  const auto copied = [](const Block& block, Pass pass) {
    double bytes = 0;
    for (const Operation& operation : block.pass(pass).operations) {
      const auto* copy = std::get_if<UnitCopy>(&operation.work);
      if (copy != nullptr) bytes += copy->bytes;
    }
    return bytes;
  };
  EXPECT_EQ(copied(room, Pass::kForward), 0);
  EXPECT_EQ(copied(stash, Pass::kForward), 2 * saved);
  EXPECT_EQ(copied(stash, Pass::kBackward), 2 * saved);
  // A layer that stays in 16 bits fuses nothing, and its buffers wait as they are.
  const auto wide = [](const std::string& more_moe) {
    testing::ExpertCase own = on_b200();
    own.more_moe = more_moe;
    own.more_training = R"(,"precision":"fp8","fp8_recipe":"mxfp8","first_layers_16_bits":1)";
    const Scenario scenario = testing::with_experts(own);
    return lower_decoder_layer(scenario, RecomputeMode::kNone, BackwardForm::kWhole,
                               kind_of(scenario, 0));
  };
  const std::string sized = R"(,"fused_mlp":true,"rank_capacity_factor":1.5)";
  EXPECT_EQ(kept(wide(sized + R"(,"stash_factor":1.25)")), kept(wide(sized)));
  // The layer at work takes more than what it leaves in the stash.
  const auto peak = [](const Block& block) { return block.pass(Pass::kForward).memory.peak; };
  EXPECT_LT(peak(stash), peak(room));
  EXPECT_GT(peak(stash) - peak(plain), kept(stash) - kept(plain));
}

}  // namespace
}  // namespace stepcast
