// SPDX-License-Identifier: Apache-2.0
// Jobs that go on without a part of their cluster.
#include "plan/lost_part.h"

#include <gtest/gtest.h>

#include <string>

#include "core/text/escape.h"
#include "predict/prediction.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;
using testing::source_folders;

// Eight replicas of two stages on four nodes.
GptCase eight_replicas() {
  GptCase c;
  c.pp = 2;
  c.dp = 8;
  c.global_batch = 64;
  c.cluster = R"("base": "dgx-a100-80g", "gpus_per_node": 4)";
  return c;
}

Scenario without(const Scenario& scenario, const std::string& part) {
  auto out = without_part(scenario, part, source_folders());
  EXPECT_TRUE(out.has_value()) << to_string(out.error());
  return out ? std::move(*out) : Scenario{};
}

TEST(LostPart, ANodeTakesItsReplicasAlong) {
  const Scenario whole = gpt(eight_replicas());
  const Scenario left = without(whole, "node1");
  EXPECT_EQ(left.cluster.gpus(), 12);
  EXPECT_EQ(left.layout.dp, 6);
  EXPECT_EQ(left.layout.pp, 2);
  EXPECT_EQ(left.training.global_batch, 60);  // what six replicas can share
  const auto before = predict(whole, source_folders()), after = predict(left, source_folders());
  ASSERT_TRUE(before && after);
  EXPECT_LT(after->tokens_per_s, before->tokens_per_s);
  EXPECT_GT(after->tokens_per_s, 0.6 * before->tokens_per_s);
}

TEST(LostPart, OneGpuLeavesItsReplicaIdle) {
  const Scenario left = without(gpt(eight_replicas()), "node1/gpu2");
  EXPECT_EQ(left.layout.dp, 7);
  EXPECT_EQ(left.cluster.gpus(), 14);  // and the other GPU of the replica stands idle
  EXPECT_EQ(left.training.global_batch, 63);
  // Four nodes are left, the second of them with two GPUs, so that no replica lies on two.
  EXPECT_EQ(left.cluster.node_of(DeviceId(5)), 1);
  EXPECT_EQ(left.cluster.node_of(DeviceId(6)), 2);
  EXPECT_EQ(left.cluster.node_of(DeviceId(13)), 3);
}

TEST(LostPart, ASlowPartLeavesTheLayoutAsItIs) {
  const Scenario whole = gpt(eight_replicas());
  const Scenario left = without(whole, "node1/gpu2=50%");
  EXPECT_EQ(left.layout.dp, 8);
  EXPECT_EQ(left.training.global_batch, 64);
  EXPECT_EQ(left.cluster.topology.kind(DeviceId(6)), (GpuKind{0, 0.5}));
}

// A file with its keys says as much.
TEST(LostPart, IsAScenarioThatReadsBack) {
  const Scenario left = without(without(gpt(eight_replicas()), "node1"), "node0/gpu3");
  EXPECT_EQ(left.layout.dp, 5);
  const Scenario again = testing::scenario_from(json_text(to_json(left)));
  EXPECT_EQ(predict(left, source_folders())->step_time,
            predict(again, source_folders())->step_time);
}

TEST(LostPart, IsRefusedWhereNothingGoesOn) {
  GptCase one = eight_replicas();
  one.dp = 1;
  const auto nothing = without_part(gpt(one), "node0/gpu0", source_folders());
  ASSERT_FALSE(nothing);
  EXPECT_NE(to_string(nothing.error()).find("a replica of the model takes 2"), std::string::npos);
  const auto unknown = without_part(gpt(one), "node7", source_folders());
  ASSERT_FALSE(unknown);
  EXPECT_NE(to_string(unknown.error()).find("no part 'node7'"), std::string::npos);
}

}  // namespace
}  // namespace stepcast
