// SPDX-License-Identifier: Apache-2.0
// A cluster that to_json() wrote reads back as the same cluster.
#include "cluster/write_cluster.h"

#include <fstream>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "tests/cluster/cluster_from.h"

namespace stepcast {
namespace {

using testing::cluster_from;

// A cluster that is a name is one through its file; everything else that pricing asks for is here.
void expect_same(const Cluster& one, const Cluster& other) {
  EXPECT_EQ(one.spec.name, other.spec.name);
  EXPECT_EQ(one.spec.gpus, other.spec.gpus);
  EXPECT_EQ(one.spec.shared_cores, other.spec.shared_cores);
  EXPECT_EQ(one.spec.network, other.spec.network);
  const Accelerator &device = one.spec.accelerator, &again = other.spec.accelerator;
  EXPECT_EQ(device.title, again.title);
  EXPECT_EQ(device.architecture, again.architecture);
  EXPECT_EQ(device.compute_capability, again.compute_capability);
  EXPECT_EQ(device.memory, again.memory);
  EXPECT_EQ(device.memory_bandwidth, again.memory_bandwidth);
  EXPECT_EQ(device.dense_peak, again.dense_peak);
  const Topology &graph = one.topology, &read = other.topology;
  ASSERT_GT(graph.vertices().size(), 1u);
  ASSERT_EQ(graph.vertices().size(), read.vertices().size());
  for (std::size_t i = 0; i < graph.vertices().size(); ++i) {
    EXPECT_EQ(graph.name(VertexId(i)), read.name(VertexId(i)));
  }
  ASSERT_EQ(graph.links().size(), read.links().size());
  for (std::size_t i = 0; i < graph.links().size(); ++i) {
    const Link &link = graph.links()[i], &same = read.links()[i];
    EXPECT_EQ(link.from.value, same.from.value);
    EXPECT_EQ(link.to.value, same.to.value);
    EXPECT_EQ(link.capacity, same.capacity) << graph.name(LinkId(i));
    EXPECT_EQ(link.latency, same.latency) << graph.name(LinkId(i));
  }
}

SortedJson expect_round_trip(const std::string& text) {
  SCOPED_TRACE(text);
  const Cluster cluster = cluster_from(text);
  const SortedJson written = to_json(cluster);
  const Cluster again = cluster_from(json_text(written));
  expect_same(cluster, again);
  EXPECT_EQ(to_json(again), written);
  return written;
}

TEST(WriteCluster, NamesABaseWithWhatWasChanged) {
  const SortedJson written =
      expect_round_trip(R"({"base": "dgx-h100", "gpus": 20, "nic": "130 Gb/s"})");
  EXPECT_EQ(written["base"], "dgx-h100");
  EXPECT_EQ(written["nic"], "130 Gb/s");
  EXPECT_FALSE(written.contains("name"));
  EXPECT_EQ(expect_round_trip(R"({"base": "dgx-h100", "name": "ours"})")["name"], "ours");
  EXPECT_EQ(expect_round_trip(R"({"base": "local", "gpus": 3})")["base"], "local");
}

// A name in a scenario is no base: nothing is listed under it.
TEST(WriteCluster, WritesOutWhatStandsInNoList) {
  const SortedJson written = expect_round_trip(R"({"name": "ours", "title": "our lab", "nodes": 2,
      "accelerator": {"name": "own", "title": "Our GPU", "architecture": "ampere", "sm_count": 60,
        "compute_capability": "8.6", "memory": "23.7 GB", "memory_bandwidth": "0.7 TB/s",
        "power_w": 300, "dense_peak": {"bf16": "123.456 TFLOP/s", "fp32": "0.7 PFLOP/s"}},
      "gpus_per_node": 3, "scale_up": "pcie", "scale_up_bandwidth": "0.3 TB/s", "pcie": "24 GiB/s",
      "scale_up_latency": "700 ns", "nics_per_node": 1, "nic": "33.3 GB/s", "network": "tcp",
      "network_latency": "0.0123 ms"})");
  EXPECT_EQ(written["name"], "ours");
  EXPECT_FALSE(written.contains("base"));
  EXPECT_EQ(written["accelerator"]["name"], "own");
}

// Cables of different rates in both directions, a NIC without one, and times that no decimal says.
TEST(WriteCluster, WritesOutAGraph) {
  const SortedJson written =
      expect_round_trip(R"({"accelerator": "a100-sxm4-80g", "network": "roce",
      "name": "uneven", "vertices": [
        {"name": "b", "kind": "gpu", "node": 1}, {"name": "n1", "kind": "nic", "node": 1},
        {"name": "a", "kind": "gpu", "node": 0}, {"name": "n0", "kind": "nic", "node": 0},
        {"name": "leaf", "kind": "leaf"}], "links": [
        {"between": ["a", "n0"], "capacity": "3.1500000000000004 GB/s"},
        {"between": ["b", "n1"], "capacity": "31.5 GiB/s", "latency": "0.1 us"},
        {"from": "n0", "to": "leaf", "capacity": "100 Gb/s", "latency": "333 ns"},
        {"from": "leaf", "to": "n0", "capacity": "100 Gb/s", "latency": "0.7 us"},
        {"between": ["leaf", "n1"], "capacity": "33.3 Gb/s", "latency": "0.0003 ms"}]})");
  EXPECT_EQ(written["vertices"].size(), 5u);
  EXPECT_EQ(written["vertices"][0], (SortedJson{{"name", "a"}, {"kind", "gpu"}, {"node", 0}}));
  ASSERT_EQ(written["links"].size(), 5u);
  EXPECT_EQ(written["links"][0]["between"], (SortedJson{"a", "n0"}));
  EXPECT_EQ(written["links"][2]["from"], "n0");
}

// A graph in a file takes no overrides, so its path is all that there is to say.
TEST(WriteCluster, NamesTheFileOfAGraph) {
  const std::string file = ::testing::TempDir() + "pair-of-write-cluster.json";
  std::ofstream(file) << R"({"stepcast_cluster": 1, "name": "pair-of-write-cluster",
      "accelerator": "a100-sxm4-80g", "vertices": [{"name": "a", "kind": "gpu", "node": 0},
      {"name": "b", "kind": "gpu", "node": 0}],
      "links": [{"between": ["a", "b"], "capacity": "50 GB/s"}]})";
  EXPECT_EQ(expect_round_trip(json_text(SortedJson{{"base", file}})), (SortedJson{{"base", file}}));
}

}  // namespace
}  // namespace stepcast
