// SPDX-License-Identifier: Apache-2.0
// Clusters of several sites: where nodes stand, and the links between them.
#include <string>

#include "cluster/write_cluster.h"
#include "core/each.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "tests/cluster/cluster_from.h"

namespace stepcast {
namespace {

using testing::cluster_from;

Cluster two_sites(const std::string& more = "") {
  return cluster_from(R"({"base": "dgx-h100", "nodes": 4, "sites": 2, "wan": "100 Gb/s",
                          "wan_latency": "10 ms")" +
                      more + "}");
}

std::size_t count(const Topology& graph, VertexKind kind) {
  std::size_t out = 0;
  for (const Vertex& vertex : each_of(graph.vertices())) out += vertex.kind == kind ? 1 : 0;
  return out;
}

// Each site has 8 rails under a spine of its own, and its spine one cable into the wide area.
TEST(Sites, HaveTheirOwnSwitchesAndOneLinkEach) {
  const Cluster cluster = two_sites();
  const Topology& graph = cluster.topology;
  EXPECT_EQ(count(graph, VertexKind::kLeaf), 16u);
  EXPECT_EQ(count(graph, VertexKind::kSpine), 2u);
  EXPECT_EQ(count(graph, VertexKind::kWan), 1u);
  std::size_t cables = 0;
  for (const Link& link : each_of(graph.links())) {
    if (graph.vertices()[link.to.index()].kind != VertexKind::kWan) continue;
    ++cables;
    EXPECT_EQ(graph.vertices()[link.from.index()].kind, VertexKind::kSpine);
    EXPECT_DOUBLE_EQ(link.capacity.value(), 12.5e9);
    EXPECT_DOUBLE_EQ(link.latency.value(), 5e-3);
  }
  EXPECT_EQ(cables, 2u);
  EXPECT_EQ(cluster.site_of(DeviceId(15)), 0);
  EXPECT_EQ(cluster.site_of(DeviceId(16)), 1);
  EXPECT_TRUE(graph.check().empty());
}

// From one spine to the other it is 10 ms; nodes of a site do not notice.
TEST(Sites, TheWayBetweenThemIsTheStatedOne) {
  const Topology graph = two_sites().topology;
  const Topology alone = cluster_from(R"({"base": "dgx-h100", "nodes": 2})").topology;
  EXPECT_EQ(graph.latency(DeviceId(0), DeviceId(8)), alone.latency(DeviceId(0), DeviceId(8)));
  EXPECT_NEAR(
      (graph.latency(DeviceId(0), DeviceId(16)) - graph.latency(DeviceId(1), DeviceId(8))).value(),
      10e-3, 1e-12);
}

// The top of a site is its only leaf, its spine, or the core above its pods.
TEST(Sites, AreJoinedByTheirTopSwitches) {
  const auto joined = [](const std::string& more) {
    const Topology graph = two_sites(more).topology;
    for (const Link& link : each_of(graph.links())) {
      if (graph.vertices()[link.to.index()].kind != VertexKind::kWan) continue;
      return graph.vertices()[link.from.index()].kind;
    }
    return VertexKind::kGpu;
  };
  EXPECT_EQ(joined(R"(, "rail_optimised": false)"), VertexKind::kLeaf);
  EXPECT_EQ(joined(""), VertexKind::kSpine);
  EXPECT_EQ(joined(R"(, "nodes_per_leaf_group": 1, "pod_nodes": 1)"), VertexKind::kCore);
}

TEST(Sites, ALinkBetweenThemFailsAsOthersDo) {
  const Cluster slow = two_sites(R"(, "fail": "spine1-wan0=50%")");
  double least = 1e30;
  for (const Link& link : each_of(slow.topology.links())) {
    if (slow.topology.vertices()[link.to.index()].kind != VertexKind::kWan) continue;
    least = std::min(least, link.capacity.value());
  }
  EXPECT_DOUBLE_EQ(least, 12.5e9 / 2);
  const auto errors = [](const std::string& text) { return testing::read(text).errors; };
  const std::string cut = R"({"base": "dgx-h100", "nodes": 4, "sites": 2, "wan": "1 Gb/s",
                              "wan_latency": "1 ms", "fail": ")";
  EXPECT_NE(to_string(errors(cut + "wan0\"}")).find("there is no path"), std::string::npos);
  EXPECT_NE(to_string(errors(cut + "node1\"}")).find("several sites"), std::string::npos);
}

// Written as keys, and as the graph that it is.
TEST(Sites, AreWrittenAndReadBack) {
  const Cluster once = two_sites();
  for (const std::string& text : {json_text(to_json(once)), json_text(graph_file(once))}) {
    const Cluster again = cluster_from(text);
    EXPECT_EQ(again.spec.sites, 2);
    EXPECT_EQ(again.spec.wan_bandwidth, once.spec.wan_bandwidth);
    EXPECT_NEAR(again.spec.wan_latency.value(), 10e-3, 1e-5);
    EXPECT_EQ(again.topology.links().size(), once.topology.links().size());
    EXPECT_EQ(again.site_of(DeviceId(16)), 1);
  }
}

}  // namespace
}  // namespace stepcast
