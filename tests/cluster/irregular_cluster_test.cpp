// SPDX-License-Identifier: Apache-2.0
// Clusters written out by hand, and what Topology::check says of broken ones.
#include <cstdio>
#include <fstream>
#include <iterator>

#include "places.h"
#include "tests/cluster/cluster_from.h"

namespace stepcast {
namespace {

using testing::cluster_from;
using testing::read;

// Two boxes of different size: three GPUs on an NVSwitch, and one alone. Each has a NIC on the same
// leaf.
constexpr char kVertices[] = R"("accelerator": "a100-sxm4-80g", "network": "roce", "vertices": [
    {"name": "z", "kind": "gpu", "node": 1}, {"name": "p1", "kind": "pcie", "node": 1},
    {"name": "a", "kind": "gpu", "node": 0}, {"name": "b", "kind": "gpu", "node": 0},
    {"name": "c", "kind": "gpu", "node": 0}, {"name": "sw", "kind": "nvswitch", "node": 0},
    {"name": "p0", "kind": "pcie", "node": 0}, {"name": "n0", "kind": "nic", "node": 0},
    {"name": "n1", "kind": "nic", "node": 1}, {"name": "leaf", "kind": "leaf"}])";
constexpr char kLinks[] = R"(
    {"between": ["a", "sw"], "capacity": "300 GB/s", "latency": "0.3 us"},
    {"between": ["b", "sw"], "capacity": "300 GB/s", "latency": "0.3 us"},
    {"between": ["c", "sw"], "capacity": "200 GB/s", "latency": "0.3 us"},
    {"between": ["a", "p0"], "capacity": "32 GB/s"},
    {"between": ["b", "p0"], "capacity": "32 GB/s"},
    {"between": ["c", "p0"], "capacity": "32 GB/s"},
    {"between": ["n0", "p0"], "capacity": "32 GB/s"},
    {"between": ["n0", "leaf"], "capacity": "100 Gb/s", "latency": "1 us"},
    {"between": ["n1", "leaf"], "capacity": "100 Gb/s", "latency": "1 us"},
    {"between": ["z", "p1"], "capacity": "32 GB/s"},
    {"between": ["n1", "p1"], "capacity": "32 GB/s"})";

std::string uneven(const std::string& more_links = "") {
  return std::string("{") + kVertices + ", \"links\": [" + kLinks + more_links + "]}";
}

TEST(IrregularCluster, NumbersDevicesNodeByNode) {
  const Cluster cluster = cluster_from(uneven());
  ASSERT_EQ(cluster.gpus(), 4);
  EXPECT_EQ(cluster.topology.name(cluster.topology.gpus()[0]), "a");
  EXPECT_EQ(cluster.topology.name(cluster.topology.gpus()[3]), "z");
  EXPECT_EQ(cluster.node_of(DeviceId(2)), 0);
  EXPECT_EQ(cluster.node_of(DeviceId(3)), 1);
  EXPECT_EQ(cluster.domain_of(DeviceId(3)), 1);
}

TEST(IrregularCluster, DerivesWhatOtherLayersAskFor) {
  const ClusterSpec spec = cluster_from(uneven()).spec;
  EXPECT_EQ(spec.nodes, 2);
  EXPECT_EQ(spec.gpus_per_node, 3);  // the largest node
  EXPECT_EQ(spec.nics_per_node, 1);
  EXPECT_EQ(spec.scale_up, ScaleUp::kNvSwitch);
  EXPECT_DOUBLE_EQ(spec.nic_bandwidth.value(), 12.5e9);
  EXPECT_DOUBLE_EQ(spec.pcie_bandwidth.value(), 32e9);
  EXPECT_NEAR(spec.scale_up_latency.value(), 0.6e-6, 1e-15);
  EXPECT_NEAR(spec.network_latency.value(), 2e-6, 1e-15);
  EXPECT_EQ(spec.accelerator.name, "a100-sxm4-80g");
}

// Each second NIC has a link to the GPUs and no cable to the leaf: no byte leaves by it, so it
// counts neither as a NIC nor as a way out of a GPU over PCIe.
TEST(IrregularCluster, ANicWithoutItsCableCountsForNothing) {
  std::string text = uneven(R"(, {"between": ["z", "m1"], "capacity": "32 GB/s"},
      {"between": ["m0", "p0"], "capacity": "32 GB/s"})");
  text.insert(text.find(R"({"name": "leaf")"), R"({"name": "m0", "kind": "nic", "node": 0},
      {"name": "m1", "kind": "nic", "node": 1}, )");
  const ClusterSpec spec = cluster_from(text).spec;
  EXPECT_EQ(spec.nics_per_node, 1);
  EXPECT_DOUBLE_EQ(spec.nic_bandwidth.value(), 12.5e9);
  EXPECT_DOUBLE_EQ(spec.pcie_bandwidth.value(), 32e9);
}

TEST(IrregularCluster, RoutesOverItsOwnLinks) {
  const Topology graph = cluster_from(uneven()).topology;
  EXPECT_EQ(graph.route(DeviceId(0), DeviceId(1)).size(), 2u);  // NVSwitch
  EXPECT_EQ(graph.route(DeviceId(0), DeviceId(3)).size(), 6u);  // pcie nic leaf nic pcie
}

TEST(IrregularCluster, ANicNeedsTheKindOfNetwork) {
  std::string without = uneven();
  without.erase(without.find(R"("network": "roce", )"), 19);
  const Errors errors = read(without).errors;
  ASSERT_EQ(errors.size(), 1u) << to_string(errors);
  EXPECT_EQ(errors[0].path, "cluster.network");
}

// The page of the format shows one: two nodes of one GPU and one NIC under a leaf.
TEST(IrregularCluster, TheExampleOfTheFormatPageReads) {
  std::ifstream page(source_folder() + "/docs/formats/cluster.md");
  const std::string text((std::istreambuf_iterator<char>(page)), std::istreambuf_iterator<char>());
  const std::size_t begin = text.find("```json\n");
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = text.find("```", begin + 8);
  const Cluster cluster = cluster_from(text.substr(begin + 8, end - begin - 8));
  EXPECT_EQ(cluster.gpus(), 2);
  EXPECT_NEAR(cluster.topology.latency(DeviceId(0), DeviceId(1)).value(), 1.2e-6, 1e-15);
}

TEST(IrregularCluster, MayBeAFileOfItsOwn) {
  const std::string file = ::testing::TempDir() + "/uneven-cluster.json";
  FILE* out = std::fopen(file.c_str(), "w");
  ASSERT_NE(out, nullptr);
  const std::string text = R"({"stepcast_cluster": 1, "name": "uneven", )" + uneven().substr(1);
  ASSERT_EQ(std::fwrite(text.data(), 1, text.size(), out), text.size());
  std::fclose(out);
  EXPECT_EQ(cluster_from("{\"base\": \"" + file + "\"}").gpus(), 4);
  const Errors errors = read("{\"base\": \"" + file + "\", \"nodes\": 3}").errors;
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].path, "cluster.nodes");  // there is nothing to override
}

struct Broken {
  const char* more;  // further links
  const char* path;
  const char* word;
};

TEST(IrregularCluster, BrokenGraphsAreRefusedNamingTheParts) {
  const Broken cases[] = {
      {R"(, {"between": ["a", "q"], "capacity": "1 GB/s"})", "cluster.links[11].between[1]",
       "no vertex 'q'"},
      {R"(, {"between": ["a"], "capacity": "1 GB/s"})", "cluster.links[11]", "1 ends"},
      {R"(, {"from": "a", "capacity": "1 GB/s"})", "cluster.links[11].to", "missing"},
      {R"(, {"between": ["a", "b"]})", "cluster.links[11].capacity", "missing"},
      {R"(, {"between": ["a", "b"], "capacity": "0 GB/s"})", "cluster.links", "a -> b"},
      {R"(, {"between": ["a", "b"], "capacity": "1"})", "cluster.links[11].capacity", "no unit"},
      {R"(, {"between": ["a", "b"], "capacity": "1 GB/s", "latency": "1"})",
       "cluster.links[11].latency", "no unit"},
      {R"(, {"between": ["a", "b"], "capacity": "1 GB/s", "speed": 1})", "cluster.links[11].speed",
       "known key"},
      {R"(, {"between": ["a", "leaf"], "capacity": "1 GB/s"})", "cluster.links[11]",
       "'a' and 'leaf'"},
      {R"(, {"between": ["a", "z"], "capacity": "1 GB/s"})", "cluster.links[11]",
       "different NVLink domains"},
      {R"(, {"between": ["p0", "p1"], "capacity": "1 GB/s"})", "cluster.links[11]",
       "different nodes"},
      {R"(, {"between": ["a", "a"], "capacity": "1 GB/s"})", "cluster.links", "itself"},
      {R"(, {"between": ["a", "sw"], "capacity": "1 GB/s"})", "cluster.links", "more than once"},
      {R"(, {"from": "a", "to": "b", "capacity": "1 GB/s"})", "cluster.links", "no way back"},
      {R"(, {"from": "a", "to": "b", "capacity": "1 GB/s"},
          {"from": "b", "to": "a", "capacity": "2 GB/s"})",
       "cluster.links", "disagree"},
      {R"(, {"between": ["a", "n0"], "capacity": "1 GB/s"})", "cluster.links", "closes a cycle"},
  };
  for (const Broken& broken : cases) {
    const Errors errors = read(uneven(broken.more)).errors;
    bool named = false;
    for (const Error& error : errors) {
      named |= error.path == broken.path &&
               (error.message + " " + error.hint).find(broken.word) != std::string::npos;
    }
    EXPECT_TRUE(named) << broken.more << "\n" << to_string(errors);
  }
}

struct BadVertices {
  const char* vertices;
  const char* path;
  const char* word;
};

TEST(IrregularCluster, BadVerticesAreRefused) {
  const BadVertices cases[] = {
      {"[]", "cluster.vertices", "no GPU"},
      {"{}", "cluster.vertices", "must be a list"},
      {R"([{"kind": "gpu", "node": 0}])", "cluster.vertices[0].name", "missing"},
      {R"([{"name": "a", "node": 0}])", "cluster.vertices[0].kind", "missing"},
      {R"([{"name": "a", "kind": "cpu", "node": 0}])", "cluster.vertices[0].kind", "gpu"},
      {R"([{"name": "a", "kind": "gpu"}])", "cluster.vertices[0]", "no node"},
      {R"([{"name": "a", "kind": "gpu", "node": 0}, {"name": "a", "kind": "gpu", "node": 0}])",
       "cluster.vertices[1]", "twice"},
      {R"([{"name": "a", "kind": "gpu", "node": 0}, {"name": "l", "kind": "leaf", "node": 0}])",
       "cluster.vertices[1]", "fabric"},
      {R"([{"name": "a", "kind": "gpu", "node": 0}, {"name": "b", "kind": "gpu", "node": 2}])",
       "cluster.vertices", "node 1 has no GPU"},
      {R"([{"name": "a", "kind": "gpu", "node": 0}, {"name": "b", "kind": "gpu", "node": 0}])",
       "cluster.links", "no link"},
      {R"([{"name": "a", "kind": "gpu", "node": -1}])", "cluster.vertices[0].node", "-1"},
  };
  for (const BadVertices& bad : cases) {
    const Errors errors =
        read(std::string(R"({"accelerator": "l40s-48g", "vertices": )") + bad.vertices + "}")
            .errors;
    bool named = false;
    for (const Error& error : errors) {
      named |= error.path == bad.path &&
               (error.message + " " + error.hint).find(bad.word) != std::string::npos;
    }
    EXPECT_TRUE(named) << bad.vertices << "\n" << to_string(errors);
  }
}

TEST(IrregularCluster, OneGpuAloneIsACluster) {
  const Cluster cluster = cluster_from(
      R"({"accelerator": "l40s-48g", "vertices": [{"name": "a", "kind": "gpu", "node": 0}]})");
  EXPECT_EQ(cluster.gpus(), 1);
}

class Check : public ::testing::Test {
 protected:
  VertexId add(VertexKind kind, int node = -1) {
    return graph_.add_vertex({kind, node, next_index_++});
  }
  void join(VertexId a, VertexId b, LinkKind kind, double capacity = 1) {
    graph_.add_cable({a, b, kind, BytesPerSecond(capacity), {}});
  }
  bool says(const std::string& word) const {
    const Errors errors = graph_.check();
    for (const Error& error : errors) {
      if (error.message.find(word) != std::string::npos) return true;
    }
    return false;
  }

  Topology graph_;
  int next_index_ = 0;
};

TEST_F(Check, FindsGpusThatCannotReachEachOther) {
  for (int node = 0; node < 2; ++node) {
    const VertexId nvswitch = add(VertexKind::kNvSwitch, node);
    join(add(VertexKind::kGpu, node), nvswitch, LinkKind::kNvlink);
    join(add(VertexKind::kGpu, node), nvswitch, LinkKind::kNvlink);
  }
  EXPECT_TRUE(says("there is no path between node0/gpu1 and node1/gpu4"));
}

// a - b - c in a row of NVLinks: b is a GPU, and passes nothing on.
TEST_F(Check, DoesNotReachThroughAGpu) {
  const VertexId a = add(VertexKind::kGpu, 0);
  const VertexId b = add(VertexKind::kGpu, 0);
  const VertexId c = add(VertexKind::kGpu, 0);
  join(a, b, LinkKind::kNvlink);
  join(b, c, LinkKind::kNvlink);
  EXPECT_TRUE(says("no path between node0/gpu0 and node0/gpu2"));
  join(a, c, LinkKind::kNvlink);
  EXPECT_TRUE(graph_.check().empty());
}

TEST_F(Check, AcceptsSwitchesOfOneTierInARing) {
  const VertexId leaves[] = {add(VertexKind::kLeaf), add(VertexKind::kLeaf),
                             add(VertexKind::kLeaf)};
  join(leaves[0], leaves[1], LinkKind::kFabric);
  join(leaves[1], leaves[2], LinkKind::kFabric);
  EXPECT_TRUE(graph_.check().empty());  // a chain is a tree
  join(leaves[2], leaves[0], LinkKind::kFabric);
  EXPECT_TRUE(graph_.check().empty());  // a torus of one dimension
}

TEST_F(Check, AcceptsTwoSpinesOverTheSameLeaves) {
  const VertexId leaves[] = {add(VertexKind::kLeaf), add(VertexKind::kLeaf)};
  for (int i = 0; i < 2; ++i) {
    const VertexId spine = add(VertexKind::kSpine);
    for (const VertexId leaf : leaves) join(leaf, spine, LinkKind::kFabric);
  }
  EXPECT_TRUE(graph_.check().empty());
}

TEST_F(Check, FindsZeroCapacityAndLooseVertices) {
  const VertexId gpu = add(VertexKind::kGpu, 0);
  join(gpu, add(VertexKind::kNvSwitch, 0), LinkKind::kNvlink, 0);
  add(VertexKind::kGpu, 0);
  EXPECT_TRUE(says("node0/gpu0 -> node0/nvswitch1 has the capacity 0"));
  EXPECT_TRUE(says("node0/gpu2 has no link"));
}

}  // namespace
}  // namespace stepcast
