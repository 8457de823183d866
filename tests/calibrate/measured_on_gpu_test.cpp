// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measured_on_gpu.h"

#include <gtest/gtest.h>

#include "cost/collective_cost.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

const Cluster& h100() {
  static const Scenario scenario = testing::scenario_from(
      R"({"stepcast": 1, "model": "gpt2", "cluster": "dgx-h100",
          "training": {"global_batch": 8}})");
  return scenario.cluster;
}

// The loss that the forecast would have taken by itself is one SM for a channel.
TEST(SmsPerChannel, IsOneWhereKernelsLoseTheChannelsAlone) {
  const ClusterSpec& spec = h100().spec;
  const CollectiveCosts costs(h100(), "");
  for (const int ranks : {2, 4, 8}) {
    std::vector<DeviceId> members;
    for (int i = 0; i < ranks; ++i) members.emplace_back(i);
    const auto channels = static_cast<double>(
        costs.price(CollectiveKind::kAllReduce, 64 << 20, DataType::kBf16, members).channels);
    const auto sms = static_cast<double>(spec.accelerator.sm_count);
    const double slowdown = sms / (sms - channels);
    EXPECT_NEAR(*sms_per_channel(slowdown, ranks, 64 << 20, spec), 1, 1e-12) << ranks;
    // And twice as much where twice as many are lost.
    EXPECT_NEAR(*sms_per_channel(sms / (sms - 2 * channels), ranks, 64 << 20, spec), 2, 1e-12);
    EXPECT_EQ(*sms_per_channel(1, ranks, 64 << 20, spec), 0);
  }
}

TEST(SmsPerChannel, IsOfGroupsInsideANode) {
  EXPECT_EQ(sms_per_channel(1.2, 1, 1 << 20, h100().spec), std::nullopt);
  EXPECT_EQ(sms_per_channel(1.2, 16, 1 << 20, h100().spec), std::nullopt);
}

TEST(MeasuredCollectives, BecomeTablesOfTheirGroups) {
  MeasuredCollective measured;
  measured.kind = CollectiveKind::kAllGather;
  measured.placement = {0, 0, 1, 1};
  for (const ByteCount bytes : {1024, 4096}) {
    Measurement time;
    time.median_s = 1e-6 * static_cast<double>(bytes);
    time.n = 5;
    measured.points.push_back({bytes, time});
  }
  MeasuredCollective single = measured;
  single.points.pop_back();
  Imported out;
  add_collectives({measured, single}, out);
  ASSERT_EQ(out.collectives.size(), 1U);  // one size is no curve
  EXPECT_EQ(out.collectives[0].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(out.collectives[0].ranks, 4);
  EXPECT_EQ(out.collectives[0].nodes, 2);
  EXPECT_EQ(out.collectives[0].launch, Launch::kOwn);
  EXPECT_DOUBLE_EQ(out.collectives[0].samples[1].time.value(), 4.096e-3);
}

}  // namespace
}  // namespace stepcast
