// SPDX-License-Identifier: Apache-2.0
// Prices and loads of collectives between sites follow the link between them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/each.h"
#include "cost/collective_cost.h"
#include "cost/collective_fixture.h"
#include "cost/link_load.h"

namespace stepcast {
namespace {

using testing::a100;
using testing::cluster_of;
using testing::devices;
using testing::shipped_profiles;

constexpr Seconds kWay{10e-3};
constexpr BytesPerSecond kRate{2e9};
constexpr ByteCount kMebibyte = ByteCount{1} << 20;

Cluster in_sites(std::int64_t nodes, std::int64_t sites, Seconds latency) {
  ClusterSpec spec = a100(nodes);
  spec.sites = sites;
  spec.wan_bandwidth = kRate;
  spec.wan_latency = latency;
  return cluster_of(spec);
}

CollectivePrice price(const Cluster& cluster, CollectiveKind kind, ByteCount size,
                      const std::vector<DeviceId>& members) {
  return CollectiveCosts(cluster, shipped_profiles()).price(kind, size, DataType::kFp32, members);
}

// One member in each of k sites: each of the 2(k - 1) steps of a ring all-reduce, and of the k - 1
// of half of one, takes the way between two sites, and waits for what the one before has brought.
TEST(Sites, ARingOfOneMemberASitePaysTheWayInEachStep) {
  AtLeast rings(3);
  for (const std::int64_t sites : {2, 3, 4}) {
    const Cluster far = in_sites(sites, sites, kWay), near = in_sites(sites, sites, kWay / 1000);
    const std::vector<DeviceId> members = devices(sites, 8);
    for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather}) {
      const CollectivePrice over = price(far, kind, 256 * kMebibyte, members);
      if (over.algorithm != Algorithm::kRing) continue;
      const double steps =
          (kind == CollectiveKind::kAllReduce ? 2.0 : 1.0) * static_cast<double>(sites - 1);
      const Seconds longer = over.time() - price(near, kind, 256 * kMebibyte, members).time();
      EXPECT_NEAR(longer.value(), steps * kWay.value() * 0.999, 1e-9) << sites;
      ++rings;
    }
  }
}

// A ring over 4 nodes in each of two sites leaves each site once a round: a message goes that way
// twice in a round, and other hops are as long as before.
TEST(Sites, ARingOfManyNodesPaysTheWayOncePerSiteAndRound) {
  const Cluster far = in_sites(8, 2, kWay), near = in_sites(8, 2, kWay / 1000);
  const auto longer = [&](CollectiveKind kind, const std::vector<DeviceId>& members) {
    return price(far, kind, 256 * kMebibyte, members).time() -
           price(near, kind, 256 * kMebibyte, members).time();
  };
  ASSERT_EQ(price(far, CollectiveKind::kAllGather, 256 * kMebibyte, devices(64)).algorithm,
            Algorithm::kRing);
  const double way = kWay.value() * 0.999;
  EXPECT_NEAR(longer(CollectiveKind::kAllGather, devices(64)).value(), 2 * way, 1e-9);
  EXPECT_NEAR(longer(CollectiveKind::kAllToAll, devices(64)).value(), way, 1e-9);
  // Half of the nodes are one site.
  EXPECT_EQ(longer(CollectiveKind::kAllGather, devices(32)).value(), 0);
  EXPECT_EQ(longer(CollectiveKind::kAllGather, devices(32, 1, 32)).value(), 0);
}

TEST(Sites, AMessageTakesTheWayOnce) {
  const Cluster far = in_sites(4, 2, kWay), near = in_sites(4, 2, kWay / 1000);
  const auto time = [](const Cluster& cluster, std::int32_t to) {
    return CollectiveCosts(cluster, shipped_profiles())
        .price_send(kMebibyte, DeviceId(0), DeviceId(to))
        .time()
        .value();
  };
  EXPECT_NEAR(time(far, 16) - time(near, 16), kWay.value() * 0.999, 1e-9);
  EXPECT_EQ(time(far, 8), time(near, 8));
}

// An all-gather of B bytes among n ranks sends (n - 1)/n B out of each site, and the link between
// sites, which is stated by the payload that it carries, holds it back to wan x n/(n - 1).
TEST(Sites, ALongMessageGoesAtTheRateOfTheLink) {
  const Cluster cluster = in_sites(4, 2, kWay);
  const CollectiveCosts costs(cluster, shipped_profiles());
  const std::vector<DeviceId> members = devices(32);
  const CollectivePrice one =
      costs.price(CollectiveKind::kAllGather, 1024 * kMebibyte, DataType::kFp32, members);
  ASSERT_EQ(one.algorithm, Algorithm::kRing);
  const std::vector<std::vector<LinkLoad>> loads = {
      costs.loads(one, CollectiveKind::kAllGather, members)};
  std::size_t links = 0;
  for (const LinkLoad& load : each_of(loads.front())) {
    const std::string name = cluster.topology.name(load.link);
    if (name.find("wan0") == std::string::npos) continue;
    ++links;
    EXPECT_NEAR(load.weight, 31.0 / 32, 1e-12) << name;
  }
  EXPECT_EQ(links, 4u);  // in and out of both
  const BytesPerSecond rate = rate_at_once(cluster.topology, one.rate_bound, loads);
  EXPECT_NEAR(rate.value(), kRate.value() * 32 / 31, 1);
}

}  // namespace
}  // namespace stepcast
