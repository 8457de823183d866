// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>

#include "tests/cluster/cluster_from.h"

namespace stepcast {
namespace {

using testing::cluster_from;

std::map<VertexKind, int> vertices_by_kind(const Topology& graph) {
  std::map<VertexKind, int> out;
  for (const Vertex& vertex : graph.vertices()) ++out[vertex.kind];
  return out;
}

std::map<LinkKind, int> links_by_kind(const Topology& graph) {
  std::map<LinkKind, int> out;
  for (const Link& link : graph.links()) ++out[link.kind];
  return out;
}

// The capacity of the links from one kind to another; all have the same.
double capacity(const Topology& graph, VertexKind from, VertexKind to) {
  double out = -1;
  for (const Link& link : graph.links()) {
    if (graph.vertices()[link.from.index()].kind != from) continue;
    if (graph.vertices()[link.to.index()].kind != to) continue;
    if (out >= 0) {
      EXPECT_DOUBLE_EQ(link.capacity.value(), out);
    }
    out = link.capacity.value();
  }
  return out;
}

// A DGX H100 has 8 GPUs, a switch plane, 8 PCIe switches, a host and 8 NICs; n nodes hang on 8
// leaves per 32 nodes and one spine.
TEST(BuildTopology, DgxH100HasTheVerticesOfItsParts) {
  for (const int n : {1, 2, 32, 33, 70}) {
    const Cluster cluster = cluster_from("\"dgx-h100x" + std::to_string(n) + "\"");
    auto count = vertices_by_kind(cluster.topology);
    EXPECT_EQ(count[VertexKind::kGpu], 8 * n);
    EXPECT_EQ(count[VertexKind::kNvSwitch], n);
    EXPECT_EQ(count[VertexKind::kPcieSwitch], 8 * n);
    EXPECT_EQ(count[VertexKind::kHost], n);
    EXPECT_EQ(count[VertexKind::kNic], 8 * n);
    EXPECT_EQ(count[VertexKind::kLeaf], 8 * ((n + 31) / 32));
    EXPECT_EQ(count[VertexKind::kSpine], 1);
    EXPECT_EQ(count[VertexKind::kCore], 0);
    auto links = links_by_kind(cluster.topology);
    EXPECT_EQ(links[LinkKind::kNvlink], 2 * 8 * n);
    EXPECT_EQ(links[LinkKind::kPcie], 2 * (8 + 8) * n);
    EXPECT_EQ(links[LinkKind::kHostBus], 2 * 8 * n);
    EXPECT_EQ(links[LinkKind::kNic], 2 * 8 * n);
    EXPECT_EQ(links[LinkKind::kFabric], 2 * count[VertexKind::kLeaf]);
  }
}

TEST(BuildTopology, NamesFollowFromKindNodeAndIndex) {
  const Topology graph = cluster_from("\"dgx-h100x2\"").topology;
  EXPECT_EQ(graph.name(graph.gpus()[13]), "node1/gpu5");
  std::map<std::string, int> seen;
  for (std::size_t i = 0; i < graph.vertices().size(); ++i) ++seen[graph.name(VertexId(i))];
  EXPECT_EQ(seen.size(), graph.vertices().size());
  EXPECT_TRUE(seen.contains("node0/nvswitch0"));
  EXPECT_TRUE(seen.contains("node1/nic7"));
  EXPECT_TRUE(seen.contains("leaf3"));
  EXPECT_TRUE(seen.contains("spine0"));
}

TEST(BuildTopology, CapacitiesAreThoseOfTheDescription) {
  const Topology graph = cluster_from("\"dgx-h100x32\"").topology;
  EXPECT_DOUBLE_EQ(capacity(graph, VertexKind::kGpu, VertexKind::kNvSwitch), 450e9);
  EXPECT_DOUBLE_EQ(capacity(graph, VertexKind::kNic, VertexKind::kLeaf), 50e9);
  EXPECT_DOUBLE_EQ(capacity(graph, VertexKind::kGpu, VertexKind::kPcieSwitch), 63e9);
  // 32 nodes x one NIC of 50 GB/s per rail, 1:1.
  EXPECT_DOUBLE_EQ(capacity(graph, VertexKind::kLeaf, VertexKind::kSpine), 32 * 50e9);
}

TEST(BuildTopology, OversubscriptionNarrowsTheTrunksAndNothingElse) {
  const Topology graph =
      cluster_from(R"({"base": "dgx-h100", "nodes": 64, "oversubscription": 4})").topology;
  EXPECT_DOUBLE_EQ(capacity(graph, VertexKind::kLeaf, VertexKind::kSpine), 32 * 50e9 / 4);
  EXPECT_DOUBLE_EQ(capacity(graph, VertexKind::kNic, VertexKind::kLeaf), 50e9);
}

// 2 pods of 4 nodes, leaf groups of 2 nodes without rails: a leaf has 2 x 8 downlinks, a pod 2 such
// leaves, and the core trunk is their uplinks over 7.
TEST(BuildTopology, PodsHangOnACoreOverTheirOwnOversubscription) {
  const Cluster cluster = cluster_from(R"({"base": "dgx-h100", "nodes": 8, "rail_optimised": false,
      "nodes_per_leaf_group": 2, "pod_nodes": 4,
      "oversubscription": 2, "pod_oversubscription": 7})");
  auto count = vertices_by_kind(cluster.topology);
  EXPECT_EQ(count[VertexKind::kLeaf], 4);
  EXPECT_EQ(count[VertexKind::kSpine], 2);
  EXPECT_EQ(count[VertexKind::kCore], 1);
  EXPECT_DOUBLE_EQ(capacity(cluster.topology, VertexKind::kLeaf, VertexKind::kSpine),
                   2 * 8 * 50e9 / 2);
  EXPECT_DOUBLE_EQ(capacity(cluster.topology, VertexKind::kSpine, VertexKind::kCore),
                   2 * (2 * 8 * 50e9 / 2) / 7);
}

TEST(BuildTopology, GpusShareNicsWhereThereAreFewer) {
  const Cluster cluster =
      cluster_from(R"({"base": "dgx-a100-80g", "nodes": 2, "nics_per_node": 4})");
  auto count = vertices_by_kind(cluster.topology);
  EXPECT_EQ(count[VertexKind::kNic], 8);
  EXPECT_EQ(count[VertexKind::kPcieSwitch], 8);  // 4 per node: two GPUs and one NIC each
}

TEST(BuildTopology, AnNvlinkDomainIsOneSwitchPlane) {
  const Cluster cluster = cluster_from(R"({"base": "gb200-nvl72", "nodes": 40})");
  auto count = vertices_by_kind(cluster.topology);
  EXPECT_EQ(count[VertexKind::kNvSwitch], 3);  // 18 + 18 + 4 trays
  EXPECT_EQ(cluster.domain_of(DeviceId(71)), 0);
  EXPECT_EQ(cluster.domain_of(DeviceId(72)), 1);
  EXPECT_EQ(cluster.node_of(DeviceId(71)), 17);
}

// Four racks of 64 hold 256 GPUs, 32 of them 2048; a scenario may say otherwise.
TEST(BuildTopology, RacksAreTakenEvenly) {
  for (const std::int64_t gpus : {256, 2048}) {
    const Cluster cluster =
        cluster_from(R"({"base": "gb200-nvl72", "gpus": )" + std::to_string(gpus) + "}");
    EXPECT_EQ(cluster.spec.gpus_per_domain(), 64);
    EXPECT_EQ(vertices_by_kind(cluster.topology)[VertexKind::kNvSwitch], gpus / 64);
  }
  const Cluster stated =
      cluster_from(R"({"base": "gb200-nvl72", "gpus": 256, "nvlink_domain_nodes": 18})");
  EXPECT_EQ(stated.spec.gpus_per_domain(), 72);
  EXPECT_EQ(cluster_from(R"({"base": "gb200-nvl72", "gpus": 72})").spec.gpus_per_domain(), 72);
}

TEST(BuildTopology, AMeshJoinsEachPairOfANode) {
  const Cluster cluster = cluster_from("\"gh200-alpsx2\"");
  EXPECT_EQ(links_by_kind(cluster.topology)[LinkKind::kNvlink], 2 * 2 * (4 * 3 / 2));
  EXPECT_DOUBLE_EQ(capacity(cluster.topology, VertexKind::kGpu, VertexKind::kGpu), 150e9);
}

TEST(BuildTopology, ABoxWithoutNvlinkHangsFourGpusOnAPcieSwitch) {
  const Cluster cluster = cluster_from("\"pcie-4090-8\"");
  auto count = vertices_by_kind(cluster.topology);
  EXPECT_EQ(count[VertexKind::kPcieSwitch], 2);
  EXPECT_EQ(count[VertexKind::kNvSwitch], 0);
  EXPECT_EQ(count[VertexKind::kNic], 0);
  EXPECT_EQ(count[VertexKind::kLeaf], 0);
  EXPECT_EQ(links_by_kind(cluster.topology)[LinkKind::kNvlink], 0);
}

TEST(BuildTopology, TheLastNodeMayBePartlyUsed) {
  const Cluster cluster = cluster_from(R"({"base": "dgx-h100", "gpus": 20})");
  EXPECT_EQ(cluster.spec.nodes, 3);
  EXPECT_EQ(cluster.gpus(), 20);
  EXPECT_EQ(cluster.topology.gpus().size(), 20u);
  EXPECT_EQ(cluster.node_of(DeviceId(19)), 2);
  EXPECT_EQ(vertices_by_kind(cluster.topology)[VertexKind::kNic], 20);
  EXPECT_TRUE(cluster.topology.check().empty()) << to_string(cluster.topology.check());
}

TEST(BuildTopology, SixteenThousandGpusBuild) {
  const Cluster cluster = cluster_from("\"dgx-h100x2048\"");
  EXPECT_EQ(cluster.topology.gpus().size(), 16384u);
  EXPECT_EQ(cluster.topology.vertices().size(), 2048u * 26 + 64 * 8 + 1);
  EXPECT_TRUE(cluster.topology.check().empty());
}

TEST(BuildTopology, TheLargestClusterIsAccepted) {
  EXPECT_EQ(cluster_from(R"({"base": "dgx-h100", "gpus": 131072})").topology.gpus().size(),
            131072u);
}

}  // namespace
}  // namespace stepcast
