// SPDX-License-Identifier: Apache-2.0
// A slow link slows the groups with a member behind it, and nobody else.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cluster/cluster_from.h"
#include "cost/collective_cost.h"
#include "cost/collective_fixture.h"

namespace stepcast {
namespace {

using testing::cluster_from;
using testing::shipped_profiles;

constexpr ByteCount kSize = ByteCount{1} << 28;

std::vector<DeviceId> range(std::int32_t first, std::int32_t end) {
  std::vector<DeviceId> out;
  for (std::int32_t i = first; i < end; ++i) out.push_back(DeviceId(i));
  return out;
}

double seconds(const Cluster& cluster, const std::vector<DeviceId>& members,
               CollectiveKind kind = CollectiveKind::kAllReduce) {
  const CollectiveCosts costs(cluster, shipped_profiles());
  return costs.price(kind, kSize, DataType::kBf16, members).time().value();
}

double send_seconds(const Cluster& cluster, std::int32_t from, std::int32_t to) {
  const CollectiveCosts costs(cluster, shipped_profiles());
  return costs.price_send(kSize, DeviceId(from), DeviceId(to)).time().value();
}

Cluster hopper(std::int64_t nodes, const std::string& more) {
  return cluster_from(R"({"base": "dgx-h100", "nodes": )" + std::to_string(nodes) + more + "}");
}

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                     CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll};

TEST(SlowLinks, ANodeWhoseNvlinksAreSlowIsOneOfThatBandwidth) {
  std::string cables;
  for (int gpu = 0; gpu < 8; ++gpu) {
    cables +=
        (gpu > 0 ? "," : "") + ("\"node0/gpu" + std::to_string(gpu)) + "-node0/nvswitch0=10%\"";
  }
  const Cluster slow = hopper(2, R"(, "fail": [)" + cables + "]");
  const Cluster healthy = hopper(2, "");
  const Cluster stated = hopper(2, R"(, "scale_up_bandwidth": "45 GB/s")");
  for (const CollectiveKind kind : kKinds) {
    EXPECT_NEAR(seconds(slow, range(0, 8), kind) / seconds(stated, range(0, 8), kind), 1, 1e-9);
    EXPECT_EQ(seconds(slow, range(8, 16), kind), seconds(healthy, range(8, 16), kind));
  }
  EXPECT_NEAR(send_seconds(slow, 0, 1) / send_seconds(stated, 0, 1), 1, 1e-9);
}

TEST(SlowLinks, OneSlowNvlinkHoldsItsGroupUpAndNoOther) {
  const Cluster slow = hopper(2, R"(, "fail": ["node0/gpu2-node0/nvswitch0=10%"])");
  const Cluster healthy = hopper(2, "");
  EXPECT_GT(seconds(slow, range(0, 4)), 5 * seconds(healthy, range(0, 4)));
  EXPECT_EQ(seconds(slow, range(4, 8)), seconds(healthy, range(4, 8)));
  EXPECT_EQ(send_seconds(slow, 0, 1), send_seconds(healthy, 0, 1));
  EXPECT_GT(send_seconds(slow, 0, 2), send_seconds(healthy, 0, 2));
}

TEST(SlowLinks, ASlowNicHoldsTheGroupsOfItsNodeUp) {
  const Cluster slow = hopper(8, R"(, "fail": ["node5/nic2=25%"])");
  const Cluster healthy = hopper(8, "");
  for (const CollectiveKind kind : kKinds) {
    EXPECT_EQ(seconds(slow, range(0, 32), kind), seconds(healthy, range(0, 32), kind));
    EXPECT_GT(seconds(slow, range(32, 64), kind), 2 * seconds(healthy, range(32, 64), kind));
  }
  EXPECT_EQ(send_seconds(slow, 0, 8), send_seconds(healthy, 0, 8));
  EXPECT_NEAR(send_seconds(slow, 2, 42) / send_seconds(healthy, 2, 42), 4, 0.3);
}

// Three of four planes are left: each NIC is one of three quarters. Where a plane is at a half,
// equal shares wait for its ports, and each NIC is one of a half.
TEST(SlowLinks, NicsWithoutAPlaneAreOnesOfTheOtherPlanes) {
  const Cluster healthy = hopper(2, R"(, "planes": 4)");
  const Cluster without = hopper(2, R"(, "planes": 4, "fail": "plane1")");
  const Cluster slow = hopper(2, R"(, "planes": 4, "fail": "plane1=50%")");
  const Cluster three_quarters = hopper(2, R"(, "nic": "300 Gb/s")");
  const Cluster half = hopper(2, R"(, "nic": "200 Gb/s")");
  const auto close = [](double a, double b) { EXPECT_NEAR(a / b, 1, 1e-9); };
  close(seconds(healthy, range(0, 16)), seconds(hopper(2, ""), range(0, 16)));
  close(seconds(without, range(0, 8)), seconds(healthy, range(0, 8)));
  // A part that is slow is no faster than with more left, where NCCL's speeds jump.
  const auto about = [](double a, double b) { EXPECT_NEAR(a / b, 1, 1e-3); };
  for (const CollectiveKind kind : kKinds) {
    about(seconds(without, range(0, 16), kind), seconds(three_quarters, range(0, 16), kind));
    about(seconds(slow, range(0, 16), kind), seconds(half, range(0, 16), kind));
  }
  close(send_seconds(without, 0, 8), send_seconds(three_quarters, 0, 8));
}

// The less is left, the longer it takes.
TEST(SlowLinks, LessIsNeverFaster) {
  for (const char* part : {"node0/gpu0-node0/nvswitch0", "node0/nic0"}) {
    for (const CollectiveKind kind : kKinds) {
      double before = 0;
      for (const int percent : {100, 90, 50, 25, 10}) {
        const Cluster cluster = hopper(
            2, R"(, "fail": [")" + std::string(part) + "=" + std::to_string(percent) + R"(%"])");
        const double now = seconds(cluster, range(0, 16), kind);
        EXPECT_GE(now, before * (1 - 1e-9)) << part << " at " << percent << " %";
        before = now;
      }
    }
  }
}

}  // namespace
}  // namespace stepcast
