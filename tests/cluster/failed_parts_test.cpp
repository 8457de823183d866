// SPDX-License-Identifier: Apache-2.0
// docs/formats/cluster.md, "Failed parts".
#include "cluster/failed_parts.h"

#include <algorithm>

#include "cluster/cluster_from.h"
#include "cluster/nic_cable.h"
#include "cluster/write_cluster.h"
#include "core/each.h"
#include "core/json_tree.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

using testing::cluster_from;
using testing::read;

Cluster with(const std::string& fail) {
  return cluster_from(R"({"base": "dgx-h100", "nodes": 2, "fail": )" + fail + "}");
}

std::size_t nics_with_cable(const Cluster& cluster) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < cluster.topology.vertices().size(); ++i) {
    count += is_nic_with_cable(cluster.topology, VertexId(i)) ? 1 : 0;
  }
  return count;
}

BytesPerSecond cable_of(const Cluster& cluster, const std::string& nic) {
  for (const Link& link : cluster.topology.links()) {
    if (link.kind == LinkKind::kNic && cluster.topology.name(link.from) == nic)
      return link.capacity;
  }
  return {};
}

TEST(FailedParts, ANicLosesItsCableAndStaysOnPcie) {
  const Cluster whole = cluster_from(R"("dgx-h100x2")"), cut = with(R"("node1/nic3")");
  EXPECT_EQ(nics_with_cable(whole), 16u);
  EXPECT_EQ(nics_with_cable(cut), 15u);
  EXPECT_EQ(cut.topology.vertices().size(), whole.topology.vertices().size());
  EXPECT_EQ(cut.topology.links().size(), whole.topology.links().size() - 2);
  // GPU 3 of node 1 still reaches GPU 3 of node 0, over another NIC.
  EXPECT_FALSE(cut.topology.route(DeviceId(3), DeviceId(11)).empty());
}

// tests/cost/slow_links_test.cpp has who waits for it.
TEST(FailedParts, ASlowCableCarriesWhatIsLeftOfIt) {
  for (const char* half : {R"(["node1/nic3=50%"])", R"(["node1/nic3=200 Gb/s"])"}) {
    const Cluster slow = with(half);
    EXPECT_EQ(cable_of(slow, "node1/nic3").value(), 25e9) << half;
    EXPECT_EQ(cable_of(slow, "node1/nic2").value(), 50e9) << half;
  }
}

TEST(FailedParts, AGpuIsGoneAndTheOthersAreNumberedAnew) {
  const Cluster cut = with(R"("node0/gpu4,node1/gpu7")");
  EXPECT_EQ(cut.gpus(), 14);
  EXPECT_EQ(cut.topology.gpus().size(), 14u);
  EXPECT_EQ(cut.topology.name(cut.topology.gpus()[4]), "node0/gpu5");
  EXPECT_EQ(cut.node_of(DeviceId(6)), 0);
  EXPECT_EQ(cut.node_of(DeviceId(7)), 1);
}

TEST(FailedParts, ASlowGpuKeepsItsCablesAndAShareOfItsSpeed) {
  const Cluster whole = cluster_from(R"("dgx-h100x2")"), slow = with(R"("node1/gpu2=80%")");
  EXPECT_EQ(slow.gpus(), 16);
  EXPECT_TRUE(slow.topology.is_uneven());
  EXPECT_FALSE(whole.topology.is_uneven());
  EXPECT_EQ(slow.topology.kind(DeviceId(10)), (GpuKind{0, 0.8}));
  EXPECT_EQ(slow.topology.kind(DeviceId(2)), GpuKind{});
  for (std::size_t i = 0; i < whole.topology.links().size(); ++i) {
    EXPECT_EQ(slow.topology.links()[i].capacity, whole.topology.links()[i].capacity);
  }
  // Each GPU of a node is slow.
  const Cluster node = with(R"("node1=50%,node1/gpu0=50%")");
  EXPECT_EQ(node.topology.kind(DeviceId(8)), (GpuKind{0, 0.25}));
  EXPECT_EQ(node.topology.kind(DeviceId(15)), (GpuKind{0, 0.5}));
  EXPECT_EQ(node.topology.kind(DeviceId(7)), GpuKind{});
  // A graph says it of the vertex.
  const Cluster again = cluster_from(json_text(graph_file(node)));
  EXPECT_EQ(again.topology.kind(DeviceId(8)), (GpuKind{0, 0.25}));
}

TEST(FailedParts, APartlyUsedNodeHasRailsWithoutCables) {
  const Cluster slow = cluster_from(R"({"base": "dgx-h100", "gpus": 4, "fail": "node0/gpu2=80%"})");
  EXPECT_EQ(slow.topology.kind(DeviceId(2)), (GpuKind{0, 0.8}));
  const Cluster cut = cluster_from(R"({"base": "dgx-h100", "gpus": 12, "fail": "node0/nic1"})");
  EXPECT_EQ(cut.gpus(), 12);
}

TEST(FailedParts, ANodeIsGoneAndTheOthersAreNumberedAnew) {
  const Cluster cut = cluster_from(R"({"base": "dgx-h100", "nodes": 3, "fail": "node1"})");
  EXPECT_EQ(cut.gpus(), 16);
  EXPECT_EQ(cut.node_of(DeviceId(15)), 1);
  EXPECT_EQ(nics_with_cable(cut), 16u);
  EXPECT_TRUE(cut.topology.check().empty()) << to_string(cut.topology.check());
}

TEST(FailedParts, ASwitchTakesItsCablesAlong) {
  // A leaf is one rail: NIC 2 of both nodes.
  const Cluster cut = with(R"("leaf2")");
  EXPECT_EQ(nics_with_cable(cut), 14u);
  EXPECT_TRUE(cut.topology.check().empty()) << to_string(cut.topology.check());
}

TEST(FailedParts, OneCableIsNamedByItsEnds) {
  const Cluster cut = with(R"("leaf0-spine0=25%")");
  double least = 1e30, most = 0;
  for (const Link& link : each_of(cut.topology.links())) {
    if (link.kind != LinkKind::kFabric) continue;
    least = std::min(least, link.capacity.value());
    most = std::max(most, link.capacity.value());
  }
  EXPECT_DOUBLE_EQ(least, 0.25 * most);
}

TEST(FailedParts, AreWrittenAndReadBack) {
  for (const char* fail : {R"("node1/nic3")", R"(["node0/gpu1", "node1/nic3=50%", "leaf4"])"}) {
    const Cluster once = with(fail);
    const Cluster again = cluster_from(json_text(to_json(once)));
    EXPECT_EQ(again.spec.failed, once.spec.failed);
    EXPECT_EQ(again.gpus(), once.gpus());
    EXPECT_EQ(again.topology.links().size(), once.topology.links().size());
    // The file of its graph has lost what failed.
    const Cluster graph = cluster_from(json_text(graph_file(once)));
    EXPECT_EQ(graph.topology.links().size(), once.topology.links().size());
    EXPECT_EQ(graph.gpus(), once.gpus());
  }
}

TEST(OtherGpus, AreOfTheAcceleratorsThatTheirPartsName) {
  const Cluster mixed = cluster_from(R"({"base": "dgx-h100", "nodes": 2, "accelerator_of":
      ["node1=a100-sxm4-80g", "node0/gpu3=h200-sxm5-141g", "node1/gpu7=h100-sxm5-80g"]})");
  EXPECT_EQ(mixed.accelerator(DeviceId(0)).name, "h100-sxm5-80g");
  EXPECT_EQ(mixed.accelerator(DeviceId(3)).name, "h200-sxm5-141g");
  EXPECT_EQ(mixed.accelerator(DeviceId(8)).name, "a100-sxm4-80g");
  EXPECT_EQ(mixed.accelerator(DeviceId(15)).name, "h100-sxm5-80g");
  EXPECT_EQ(mixed.spec.other_accelerators.size(), 2u);
  for (const std::string& text : {json_text(to_json(mixed)), json_text(graph_file(mixed))}) {
    const Cluster again = cluster_from(text);
    for (std::int32_t gpu = 0; gpu < 16; ++gpu) {
      EXPECT_EQ(again.accelerator(DeviceId(gpu)).name, mixed.accelerator(DeviceId(gpu)).name);
    }
  }
  const auto error = [](const std::string& others) {
    return to_string(
        read(R"({"base": "dgx-h100", "nodes": 2, "accelerator_of": )" + others + "}").errors);
  };
  EXPECT_NE(error(R"("node2=a100-sxm4-80g")").find("names no GPUs"), std::string::npos);
  EXPECT_NE(error(R"("node0/nic0=a100-sxm4-80g")").find("names no GPUs"), std::string::npos);
  EXPECT_NE(error(R"("node0")").find("names no GPUs"), std::string::npos);
  EXPECT_NE(error(R"("node0=a100-sxm4-81g")").find("a100-sxm4-80g"), std::string::npos);
  EXPECT_NE(error(R"("node0=cpu")").find("processors"), std::string::npos);
}

TEST(FailedParts, WhatIsNotThereIsRefusedWithWhatIsNear) {
  const auto error = [](const std::string& fail) {
    return to_string(read(R"({"base": "dgx-h100", "nodes": 2, "fail": )" + fail + "}").errors);
  };
  EXPECT_NE(error(R"("node1/nic9")")
                .find("cluster.fail: the cluster has no part 'node1/nic9' (did "
                      "you mean 'node1/nic"),
            std::string::npos)
      << error(R"("node1/nic9")");
  EXPECT_NE(error(R"("node1/nic3=500 Gb/s")").find("is not what is left"), std::string::npos);
  EXPECT_NE(error(R"("node1/gpu3=50 GB/s")").find("a share of its speed"), std::string::npos);
  EXPECT_NE(error(R"("node1=0.1%")").find("is not what is left of node1"), std::string::npos);
  EXPECT_NE(error(R"("node2")").find("no part 'node2'"), std::string::npos);
  EXPECT_NE(error(R"("node0/nvswitch0-leaf0")").find("no part"), std::string::npos);
  std::string all = "node1/gpu0";
  for (int i = 1; i < 8; ++i) all += ",node1/gpu" + std::to_string(i);
  EXPECT_NE(error('"' + all + '"').find("node1 has no GPU left"), std::string::npos);
  // A graph whose only GPU has failed.
  const std::string graph = R"({"accelerator": "h100-sxm5-80g", "vertices": [
      {"name": "gpu0", "kind": "gpu", "node": 0}, {"name": "host0", "kind": "host", "node": 0}],
      "links": [{"between": ["gpu0", "host0"], "capacity": "50 GB/s", "latency": "1 us"}],
      "fail": "gpu0"})";
  EXPECT_NE(to_string(read(graph).errors).find("node0 has no GPU left"), std::string::npos);
  // Without any NIC the nodes do not reach each other.
  std::string nics = "node1/nic0";
  for (int i = 1; i < 8; ++i) nics += ",node1/nic" + std::to_string(i);
  EXPECT_NE(error('"' + nics + '"').find("no path between"), std::string::npos);
}

// `degrade` says the same as `fail` with what is left, in three forms, and stands beside it.
TEST(FailedParts, ThatAreSlowAreDegraded) {
  const Cluster failed = cluster_from(
      R"({"base": "dgx-h100", "nodes": 2, "fail": "node0/nic3,node1/nic2=50%,node0/gpu1=80%"})");
  for (const char* degrade :
       {R"({"node1/nic2": 0.5, "node0/gpu1": "80%"})", R"("node1/nic2=50%,node0/gpu1=80%")",
        R"(["node1/nic2=50%", "node0/gpu1=80%"])"}) {
    const Cluster slow =
        cluster_from(std::string(R"({"base": "dgx-h100", "nodes": 2, "fail": "node0/nic3",
                                     "degrade": )") +
                     degrade + "}");
    ASSERT_EQ(slow.spec.failed.size(), 3u) << degrade;
    for (const FailedPart& part : failed.spec.failed) {
      EXPECT_NE(std::ranges::find(slow.spec.failed, part), slow.spec.failed.end()) << part.part;
    }
  }
}

}  // namespace
}  // namespace stepcast
