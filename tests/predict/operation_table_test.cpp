// SPDX-License-Identifier: Apache-2.0
#include "predict/operation_table.h"

#include <gtest/gtest.h>

#include <set>

#include "predict/prediction.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;
using testing::source_folders;

// On GPUs with a fast host, a rank's passes are its operations, one after the other.
TEST(OperationTable, AddsUpToThePassesOfAStep) {
  GptCase c;
  c.tp = 2;
  c.global_batch = 4;
  c.recompute = "full";
  const Scenario scenario = gpt(c);
  const auto table = operation_table(scenario, source_folders(), RankId(1));
  ASSERT_TRUE(table) << to_string(table.error());
  const auto prediction = predict(scenario, source_folders());
  ASSERT_TRUE(prediction);
  Seconds recompute, optimizer;
  for (const OperationPrice& row : *table) {
    const bool collective = row.signature.starts_with("collective ");
    if (row.phase == Phase::kRecompute && !collective) recompute += row.total;
    if (row.phase == Phase::kOptimizer) optimizer += row.total;
  }
  EXPECT_GT(recompute.value(), 0);
  EXPECT_NEAR(recompute / prediction->time.recompute, 1, 1e-6);
  EXPECT_NEAR(optimizer / prediction->time.optimizer, 1, 1e-6);
}

TEST(OperationTable, CountsTheCallsOfAStep) {
  GptCase c;  // 4 layers
  c.global_batch = 6;
  const auto table = operation_table(gpt(c), source_folders(), RankId(0));
  ASSERT_TRUE(table);
  std::set<std::tuple<std::string, std::string, Phase>> seen;
  double qkv = 0;
  for (const OperationPrice& row : *table) {
    EXPECT_TRUE(seen.emplace(row.signature, row.name, row.phase).second) << row.signature;
    if (row.name == "qkv" && row.phase == Phase::kForward) qkv += row.calls_per_step;
  }
  EXPECT_EQ(qkv, 4 * 6);  // layers x micro-batches
}

}  // namespace
}  // namespace stepcast
