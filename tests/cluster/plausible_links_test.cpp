// SPDX-License-Identifier: Apache-2.0
#include "cluster/plausible_links.h"

#include <gtest/gtest.h>

#include <string>

#include "cluster/cluster.h"
#include "cluster/cluster_from.h"
#include "core/each.h"

namespace stepcast {
namespace {

using testing::cluster_from;

std::string found(const std::string& overrides) {
  const Cluster cluster = cluster_from(R"({"base": "dgx-h100", "nodes": 2, )" + overrides + "}");
  return to_string(implausible_links(cluster.topology));
}

TEST(PlausibleLinks, AllThatShipIs) {
  const auto clusters = list_clusters(testing::kTopologies);
  ASSERT_TRUE(clusters.has_value());
  for (const ClusterSpec& spec : each_of(*clusters)) {
    EXPECT_EQ(to_string(implausible_links(build_topology(spec))), "") << spec.name;
  }
}

TEST(PlausibleLinks, ASlipOfAUnitIsFoundOnceForAllItsLinks) {
  const std::string fast = found(R"("pcie": "63 Tb/s")");
  EXPECT_NE(fast.find("7875 GB/s, more than PCIe can"), std::string::npos) << fast;
  EXPECT_NE(fast.find("others"), std::string::npos) << fast;
  EXPECT_EQ(fast.find("NIC"), std::string::npos) << fast;
  const std::string late = found(R"("network_latency": "5 s")");
  EXPECT_NE(late.find("a latency of 2.5 s, longer than a NIC has"), std::string::npos) << late;
}

}  // namespace
}  // namespace stepcast
