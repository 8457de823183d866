// SPDX-License-Identifier: Apache-2.0
#include "program/reference_scenario.h"

#include <gtest/gtest.h>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

TEST(ReferenceScenario, IsTheSameModelOnTheSameBatchForOneRankInFp32) {
  testing::GptCase c;
  c.framework = "fsdp";
  c.attention = "flash";
  c.dp = 2;
  c.zero = 3;
  c.dropout = 0;
  c.extra_training = R"(, "grad_precision": "bf16")";
  const Scenario scenario = testing::gpt(c);
  const Scenario reference =
      testing::scenario_from(json_text(reference_scenario(to_json(scenario))));
  EXPECT_EQ(reference.model.layers, scenario.model.layers);
  EXPECT_EQ(reference.training.global_batch, scenario.training.global_batch);
  EXPECT_EQ(reference.training.sequence_length, scenario.training.sequence_length);
  EXPECT_EQ(reference.training.precision, DataType::kFp32);
  EXPECT_EQ(reference.training.grad_precision, DataType::kFp32);
  EXPECT_EQ(reference.cluster.gpus(), 1);
  EXPECT_EQ(reference.layout.dp, 1);
}

TEST(ReferenceScenario, LeavesTheRulesOfTheOtherFrameworkBehind) {
  testing::GptCase c;
  c.framework = "megatron";
  c.tp = 2;
  c.extra_training = R"(, "async_tensor_backward": true, "bucket_elements": 7)";
  const Scenario reference =
      testing::scenario_from(json_text(reference_scenario(to_json(testing::gpt(c)))));
  EXPECT_FALSE(reference.rules.async_tensor_backward);
  EXPECT_NE(reference.rules.bucket_elements, 7);
}

}  // namespace
}  // namespace stepcast
