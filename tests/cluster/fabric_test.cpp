// SPDX-License-Identifier: Apache-2.0
// docs/formats/cluster.md, "Fabrics".
#include "cluster/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cluster/cluster_from.h"
#include "cluster/write_cluster.h"
#include "core/each.h"
#include "core/json_tree.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

using testing::cluster_from;
using testing::read;

Cluster dgx(std::int64_t nodes, const std::string& keys) {
  return cluster_from(fmt::format(R"({{"base": "dgx-h100", "nodes": {}, {}}})", nodes, keys));
}

// One GPU and one NIC a node, so that device i is on node i.
Cluster singles(std::int64_t nodes, const std::string& keys) {
  return dgx(nodes, R"("gpus_per_node": 1, "nics_per_node": 1, )" + keys);
}

std::vector<LinkShare> fabric_links(const Cluster& cluster, std::size_t from, std::size_t to) {
  std::vector<LinkShare> out;
  for (const LinkShare& share : cluster.topology.route(DeviceId(from), DeviceId(to))) {
    const LinkKind kind = cluster.topology.links()[share.link.index()].kind;
    if (kind == LinkKind::kFabric) out.push_back(share);
  }
  return out;
}

double hops(const std::vector<LinkShare>& links) {
  double sum = 0;
  for (const LinkShare& share : links) sum += share.fraction;
  return sum;
}

// So much can go from one GPU to another: each link has a share of it.
double most_between(const Cluster& cluster, std::size_t from, std::size_t to) {
  double most = 1e30;
  for (const LinkShare& share : cluster.topology.route(DeviceId(from), DeviceId(to))) {
    const Link& link = cluster.topology.links()[share.link.index()];
    most = std::min(most, link.capacity.value() / share.fraction);
  }
  return most;
}

std::set<std::string> names_on(const Cluster& cluster, std::size_t from, std::size_t to) {
  std::set<std::string> out;
  for (const LinkShare& share : cluster.topology.route(DeviceId(from), DeviceId(to))) {
    out.insert(cluster.topology.name(cluster.topology.links()[share.link.index()].to));
  }
  return out;
}

// A NIC of 50 GB/s has four ports of 12.5, each to a leaf of its own plane. Together they carry
// what the NIC does; without a plane three quarters of it are left, and with a plane at a half
// equal shares go at the pace of the slowest port: 4 x 6.25.
TEST(Planes, CarryTheirShareOfEachNic) {
  const char* const planes = R"("planes": 4, "nodes_per_leaf_group": 2)";
  const Cluster whole = dgx(4, planes);
  EXPECT_EQ(whole.topology.route(DeviceId(0), DeviceId(8)).size(), 4u * 2 + 4);
  EXPECT_DOUBLE_EQ(most_between(whole, 0, 8), 50e9);
  EXPECT_DOUBLE_EQ(most_between(whole, 0, 16), 50e9);  // over the spines
  const auto with = [&](const std::string& fail) {
    return dgx(4, std::string(planes) + R"(, "fail": ")" + fail + "\"");
  };
  for (const std::size_t to : {8, 16}) {
    EXPECT_DOUBLE_EQ(most_between(with("plane1"), 0, to), 37.5e9);
    EXPECT_DOUBLE_EQ(most_between(with("plane1=50%"), 0, to), 25e9);
    EXPECT_DOUBLE_EQ(most_between(with("plane1,plane2,plane3"), 0, to), 12.5e9);
  }
  EXPECT_FALSE(
      read(R"({"base": "dgx-h100", "nodes": 4, "planes": 2, "fail": "plane2"})").errors.empty());
}

TEST(Planes, HaveNamesThatAWrittenGraphKeeps) {
  const Cluster cluster = dgx(2, R"("planes": 2)");
  const std::set<std::string> names = names_on(cluster, 0, 8);
  EXPECT_TRUE(names.contains("plane0/leaf0"));
  EXPECT_TRUE(names.contains("plane1/leaf0"));
  SortedJson graph = graph_file(cluster);
  graph["fail"] = "plane0";
  const Cluster cut = cluster_from(json_text(graph));
  EXPECT_FALSE(names_on(cut, 0, 8).contains("plane0/leaf0"));
  EXPECT_TRUE(names_on(cut, 0, 8).contains("plane1/leaf0"));
}

// GPU 0 of a node reaches GPU 1 of another: over NVLink to its own GPU 1, whose rail leads there.
TEST(RailsApart, HandTrafficOverNvlinkToTheReceiversRail) {
  const Cluster cluster = dgx(4, R"("rails_joined": false)");
  for (const Vertex& vertex : each_of(cluster.topology.vertices())) {
    EXPECT_NE(vertex.kind, VertexKind::kSpine);
  }
  const std::set<std::string> expected = {"node0/nvswitch0", "node0/gpu1", "node0/pcie1",
                                          "node0/nic1",      "leaf1",      "node1/nic1",
                                          "node1/pcie1",     "node1/gpu1"};
  EXPECT_EQ(names_on(cluster, 0, 9), expected);
  EXPECT_DOUBLE_EQ(most_between(cluster, 0, 9), 50e9);
  EXPECT_FALSE(names_on(cluster, 0, 8).contains("node0/nvswitch0"));
}

// Two groups of leaves: eight spines, each with one leaf of each group.
TEST(RailsApart, HaveSpinesOfTheirOwn) {
  const Cluster cluster = dgx(4, R"("rails_joined": false, "nodes_per_leaf_group": 2)");
  std::map<VertexKind, int> count;
  for (const Vertex& vertex : cluster.topology.vertices()) ++count[vertex.kind];
  EXPECT_EQ(count[VertexKind::kLeaf], 16);
  EXPECT_EQ(count[VertexKind::kSpine], 8);
  EXPECT_EQ(names_on(cluster, 3, 19).contains("spine3"), true);
  EXPECT_EQ(fabric_links(cluster, 3, 19).size(), 2u);
}

// Without NVLink, GPUs of two PCIe switches: half of it changes the rail before the network, and
// half behind it, over the host both times.
TEST(RailsApart, ChangeTheRailOverTheHostWhereThereIsNoNvlink) {
  const Cluster cluster = cluster_from(R"({"accelerator": "l40s-48g", "nodes": 2,
      "gpus_per_node": 8, "scale_up": "pcie", "scale_up_bandwidth": "31 GB/s", "pcie": "31 GB/s",
      "nics_per_node": 2, "nic": "200 Gb/s", "network": "roce", "network_latency": "1 us",
      "rails_joined": false})");
  const std::set<std::string> names = names_on(cluster, 0, 12);
  EXPECT_TRUE(names.contains("node0/host0") && names.contains("node1/host0"));
  EXPECT_DOUBLE_EQ(hops(cluster.topology.route(DeviceId(0), DeviceId(12))), 8);
}

TEST(RailsApart, AreRefusedWhereNoRailIsLeftBetweenTwoNodes) {
  const Errors errors = read(R"({"base": "dgx-a100-80g", "nodes": 3, "gpus_per_node": 2,
      "nics_per_node": 2, "rails_joined": false, "fail": "node0/nic0,node1/nic1"})")
                            .errors;
  ASSERT_EQ(errors.size(), 1u) << to_string(errors);
  EXPECT_EQ(errors[0].path, "cluster.fail");
  EXPECT_EQ(errors[0].message, "no switches lead from node0 to node1");
}

// Four groups of three routers: 3 cables in each group, and 2 between each two of the six pairs.
TEST(Dragonfly, JoinsRoutersOfAGroupAndGroups) {
  const Cluster cluster = singles(24, R"("fabric": "dragonfly", "nodes_per_router": 2,
      "routers_per_group": 3, "router_link": "200 Gb/s", "global_links": 2,
      "global_link": "100 Gb/s")");
  const Topology& graph = cluster.topology;
  std::map<double, int> cables;
  std::map<std::int32_t, double> global_of_group;
  for (const Link& link : graph.links()) {
    if (link.kind != LinkKind::kFabric) continue;
    ++cables[link.capacity.value()];
    const std::int32_t group = graph.vertices()[link.from.index()].index / 3;
    if (group != graph.vertices()[link.to.index()].index / 3) {
      global_of_group[group] += link.capacity.value();
    }
  }
  EXPECT_EQ(cables, (std::map<double, int>{{25e9, 2 * 4 * 3}, {12.5e9, 2 * 6 * 2}}));
  for (const auto& [group, capacity] : each_of(global_of_group)) {
    EXPECT_DOUBLE_EQ(capacity, 3 * 2 * 12.5e9) << group;
  }
}

// Ways have at most a local, a global and a local cable.
TEST(Dragonfly, TakesTheShortestWays) {
  const Cluster cluster = singles(24, R"("fabric": "dragonfly", "nodes_per_router": 2,
      "routers_per_group": 3, "router_link": "200 Gb/s", "global_link": "100 Gb/s")");
  for (std::size_t from = 0; from < 24; ++from) {
    for (std::size_t to = 0; to < 24; ++to) {
      const double links = hops(fabric_links(cluster, from, to));
      if (from / 2 == to / 2) {
        EXPECT_EQ(links, 0);
      } else if (from / 6 == to / 6) {
        EXPECT_EQ(links, 1);
      } else {
        EXPECT_GE(links, 1);
        EXPECT_LE(links, 3);
      }
      const std::array<std::int64_t, 2> nodes = {static_cast<std::int64_t>(from),
                                                 static_cast<std::int64_t>(to)};
      EXPECT_GE(static_cast<double>(links_between_switches(cluster.spec, nodes)), links);
    }
  }
}

// A cable between two groups is the only one, and without it the way leads over a third group.
TEST(Dragonfly, GoesOverAThirdGroupWithoutTheCableOfTwo) {
  const char* const keys = R"("fabric": "dragonfly", "router_link": "200 Gb/s",
      "global_link": "100 Gb/s")";
  EXPECT_EQ(hops(fabric_links(singles(4, keys), 0, 2)), 1);
  const std::string cut = std::string(keys) + R"(, "fail": "leaf0-leaf2")";
  EXPECT_EQ(hops(fabric_links(singles(4, cut), 0, 2)), 2);
}

// On a torus of 4 x 3 x 2 with the first dimension fastest, a way is as long as the distances on
// its three rings together, and as much comes in as goes out.
TEST(Torus, WaysAreTheSumOfTheDistancesOnItsRings) {
  const Cluster cluster = singles(24, R"("fabric": "torus", "torus": [4, 3, 2],
      "router_link": "200 Gb/s")");
  const auto on_ring = [](std::size_t a, std::size_t b, std::size_t size) {
    const std::size_t apart = a > b ? a - b : b - a;
    return std::min(apart, size - apart);
  };
  for (std::size_t from = 0; from < 24; ++from) {
    for (std::size_t to = 0; to < 24; ++to) {
      const std::size_t apart = on_ring(from % 4, to % 4, 4) +
                                on_ring(from / 4 % 3, to / 4 % 3, 3) +
                                on_ring(from / 12, to / 12, 2);
      EXPECT_NEAR(hops(fabric_links(cluster, from, to)), static_cast<double>(apart), 1e-12);
      const std::array<std::int64_t, 2> nodes = {static_cast<std::int64_t>(from),
                                                 static_cast<std::int64_t>(to)};
      EXPECT_EQ(links_between_switches(cluster.spec, nodes), static_cast<std::int64_t>(apart));
    }
  }
}

// Half way round a ring of four there are two ways, and to the corner of a square two.
TEST(Torus, WaysOfEqualLengthShareEvenly) {
  const Cluster ring = singles(4, R"("fabric": "torus", "torus": [4], "router_link": "10 Gb/s")");
  for (const LinkShare& share : each_of(fabric_links(ring, 0, 2))) EXPECT_EQ(share.fraction, 0.5);
  EXPECT_DOUBLE_EQ(most_between(ring, 0, 2), 2 * 1.25e9);
  EXPECT_DOUBLE_EQ(most_between(ring, 0, 1), 1.25e9);
  const Cluster square =
      singles(9, R"("fabric": "torus", "torus": [3, 3], "router_link": "10 Gb/s")");
  EXPECT_DOUBLE_EQ(most_between(square, 0, 4), 2 * 1.25e9);
}

// The distance over all pairs of some nodes: the longest is found without looking at each.
TEST(Torus, LongestWayOfAGroupIsThatOfItsFarthestPair) {
  const Cluster ring = singles(40, R"("fabric": "torus", "torus": [40], "router_link": "1 GB/s")");
  for (const std::vector<std::int64_t>& nodes : std::vector<std::vector<std::int64_t>>{
           {0, 1, 2}, {0, 39}, {5, 25}, {0, 13, 27}, {3, 22, 24}, {7}, {38, 39, 0, 1, 19}}) {
    std::int64_t longest = 0;
    for (const std::int64_t a : nodes) {
      for (const std::int64_t b : nodes) {
        longest = std::max(longest, std::min(std::abs(a - b), 40 - std::abs(a - b)));
      }
    }
    EXPECT_EQ(links_between_switches(ring.spec, nodes), longest);
  }
}

TEST(Fabric, IsWrittenAndReadBack) {
  for (const char* keys : {R"("planes": 2, "rails_joined": false, "nodes_per_leaf_group": 2)",
                           R"("fabric": "torus", "torus": [2, 3], "router_link": "130 Gb/s")",
                           R"("fabric": "dragonfly", "routers_per_group": 2, "planes": 3,
                              "router_link": "20 GB/s", "global_link": "7 GB/s",
                              "global_links": 3)"}) {
    const Cluster cluster = dgx(6, keys);
    const Cluster again = cluster_from(json_text(to_json(cluster)));
    EXPECT_EQ(json_text(graph_file(again)), json_text(graph_file(cluster))) << keys;
    EXPECT_EQ(json_text(to_json(again)), json_text(to_json(cluster))) << keys;
  }
}

struct BadFabric {
  const char* keys;
  const char* path;
  const char* word;
};

TEST(Fabric, BadOnesAreRefusedNamingTheKey) {
  const BadFabric bad[] = {
      {R"("fabric": "tree")", "cluster.fabric", "fat_tree"},
      {R"("planes": 0)", "cluster.planes", "0"},
      {R"("planes": 17)", "cluster.planes", "16"},
      {R"("rails_joined": false, "rail_optimised": false)", "cluster.rails_joined", "rails"},
      {R"("fabric": "torus", "router_link": "1 GB/s")", "cluster.torus", "[4, 4, 2]"},
      {R"("fabric": "torus", "torus": [2, 2])", "cluster.router_link", "200 Gb/s"},
      {R"("fabric": "torus", "torus": [2, 2], "router_link": "1 GB/s")", "cluster.torus",
       "no place for 6 nodes"},
      {R"("fabric": "torus", "torus": [0, 9], "router_link": "1 GB/s")", "cluster.torus[0]", "0"},
      {R"("fabric": "torus", "torus": [6], "router_link": "1 GB/s", "oversubscription": 2)",
       "cluster.oversubscription", "this one is a torus"},
      {R"("fabric": "dragonfly", "router_link": "1 GB/s")", "cluster.global_link", "groups"},
      {R"("fabric": "dragonfly", "router_link": "1 GB/s", "global_link": "1 GB/s",
          "routers_per_group": 100000)",
       "cluster.routers_per_group", "at most"},
      {R"("torus": [6])", "cluster.torus", "fat_tree"},
      {R"("global_link": "1 GB/s")", "cluster.global_link", "dragonfly"}};
  for (const BadFabric& one : bad) {
    const Errors errors =
        read(std::string(R"({"base": "dgx-h100", "nodes": 6, )") + one.keys + "}").errors;
    const bool named = std::ranges::any_of(errors, [&](const Error& error) {
      return error.path == one.path &&
             (error.message + " " + error.hint).find(one.word) != std::string::npos;
    });
    EXPECT_TRUE(named) << one.keys << "\n" << to_string(errors);
  }
}

}  // namespace
}  // namespace stepcast
