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

}  // namespace
}  // namespace stepcast
