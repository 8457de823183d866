// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
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
using testing::h100;
using testing::shipped_profiles;

std::vector<double> weights_of(const Cluster& cluster, const std::vector<LinkLoad>& loads,
                               LinkKind kind) {
  std::vector<double> result;
  for (const LinkLoad& load : loads) {
    if (cluster.topology.links()[load.link.index()].kind == kind) result.push_back(load.weight);
  }
  return result;
}

double total(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

VertexKind from_kind(const Cluster& cluster, LinkId link) {
  const Topology& graph = cluster.topology;
  return graph.vertices()[graph.links()[link.index()].from.index()].kind;
}

// Every rank sends 2(n-1)/n bytes per byte of payload over its NVLinks, and receives as many.
TEST(LinkLoad, RingAllReduceInANodeLoadsEveryLinkAlike) {
  const Cluster cluster = cluster_of(a100(1));
  for (const std::int64_t n : {2, 3, 4, 8}) {
    const auto loads =
        routed_bytes(cluster, Algorithm::kRing, CollectiveKind::kAllReduce, devices(n));
    const double expected = 2 * static_cast<double>(n - 1) / static_cast<double>(n);
    EXPECT_EQ(loads.size(), static_cast<std::size_t>(2 * n));  // one out, one in for each rank
    for (const LinkLoad& load : loads) EXPECT_NEAR(load.weight, expected, 1e-12);
  }
}

TEST(LinkLoad, GatherAndScatterMoveHalfOfAnAllReduce) {
  const Cluster cluster = cluster_of(a100(1));
  for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    for (const LinkLoad& load :
         each_of(routed_bytes(cluster, Algorithm::kRing, kind, devices(8)))) {
      EXPECT_NEAR(load.weight, 7.0 / 8, 1e-12);
    }
  }
}

// One GPU per node: the whole ring passes its NIC, 2(n-1)/n each way.
TEST(LinkLoad, RingOfOneGpuPerNodePassesItsNic) {
  const Cluster cluster = cluster_of(a100(4));
  const auto loads =
      routed_bytes(cluster, Algorithm::kRing, CollectiveKind::kAllReduce, devices(4, 8));
  const std::vector<double> nics = weights_of(cluster, loads, LinkKind::kNic);
  EXPECT_FALSE(nics.empty());
  for (const double weight : nics) EXPECT_NEAR(weight, 1.5, 1e-12);
  EXPECT_TRUE(weights_of(cluster, loads, LinkKind::kNvlink).empty());
}

// Aggregated trees hand on as much as a ring, (n-1)/n, whatever the number of ranks: 5 send one
// part 4 places on and two 2 places on, and have one more to send to the next (1 + 2 + 1 of 5).
TEST(LinkLoad, AggregatedTreesMoveWhatARingMoves) {
  for (const std::int64_t n : {2, 4, 5}) {
    const Cluster cluster = cluster_of(a100(n));
    const auto loads =
        routed_bytes(cluster, Algorithm::kPat, CollectiveKind::kAllGather, devices(n, 8));
    const std::vector<double> nics = weights_of(cluster, loads, LinkKind::kNic);
    EXPECT_FALSE(nics.empty());
    for (const double weight : nics) {
      EXPECT_NEAR(weight, static_cast<double>(n - 1) / static_cast<double>(n), 1e-12);
    }
  }
}

// Whole nodes: the ring crosses each boundary once, an eighth on each of the 8 NICs; inside, a
// member of each channel passes on to the network instead, 7/8 of the payload's steps on NVLink.
TEST(LinkLoad, RingOfWholeNodesSpreadsOverTheNics) {
  const Cluster cluster = cluster_of(a100(4));
  const auto loads =
      routed_bytes(cluster, Algorithm::kRing, CollectiveKind::kAllGather, devices(32));
  const double step = 31.0 / 32;
  ASSERT_FALSE(weights_of(cluster, loads, LinkKind::kNic).empty());
  ASSERT_FALSE(weights_of(cluster, loads, LinkKind::kNvlink).empty());
  for (const double weight : weights_of(cluster, loads, LinkKind::kNic)) {
    EXPECT_NEAR(weight, step / 8, 1e-12);
  }
  for (const double weight : weights_of(cluster, loads, LinkKind::kNvlink)) {
    EXPECT_NEAR(weight, step * 7 / 8, 1e-12);
  }
}

// Conservation: over all hops of a ring n x (n-1)/n = n-1 payloads leave GPUs, by NVLink or by
// PCIe.
TEST(LinkLoad, WhatLeavesTheGpusIsWhatTheAlgorithmMoves) {
  const Cluster cluster = cluster_of(a100(8));
  for (const auto& members :
       {devices(8), devices(16), devices(64), devices(8, 8), devices(16, 4)}) {
    const auto loads = routed_bytes(cluster, Algorithm::kRing, CollectiveKind::kAllGather, members);
    double out = 0;
    for (const LinkLoad& load : loads) {
      if (from_kind(cluster, load.link) == VertexKind::kGpu) out += load.weight;
    }
    EXPECT_NEAR(out, static_cast<double>(members.size()) - 1, 1e-9);
  }
}

// An all-to-all moves (n-1)/n of each rank's payload; across nodes some of it passes a second GPU
// of the node, whose NIC is of the right rail.
TEST(LinkLoad, AllToAllCrossesTheNetworkOnce) {
  const Cluster cluster = cluster_of(h100(4));
  const auto loads =
      routed_bytes(cluster, Algorithm::kPairwise, CollectiveKind::kAllToAll, devices(32));
  double to_network = 0;
  for (const LinkLoad& load : loads) {
    if (from_kind(cluster, load.link) != VertexKind::kNic) continue;
    const Link& link = cluster.topology.links()[load.link.index()];
    const VertexKind to = cluster.topology.vertices()[link.to.index()].kind;
    if (to == VertexKind::kLeaf) to_network += load.weight;
  }
  EXPECT_NEAR(to_network, 32 * 24.0 / 32, 1e-9);
  for (const double weight : weights_of(cluster, loads, LinkKind::kNvlink)) {
    EXPECT_NEAR(weight, 7.0 / 32 + 24.0 / 32 * 7 / 8, 1e-12);
  }
}

// 1 + 1/n out and in on each GPU's links to the switches.
TEST(LinkLoad, InSwitchReductionMovesThePayloadOnce) {
  const Cluster cluster = cluster_of(h100(1));
  const auto loads =
      routed_bytes(cluster, Algorithm::kNvls, CollectiveKind::kAllReduce, devices(8));
  EXPECT_EQ(loads.size(), 16u);
  for (const LinkLoad& load : loads) EXPECT_NEAR(load.weight, 1 + 1.0 / 8, 1e-12);
}

// Every node is an inner node of one tree and a leaf of the other (but for the two roots), so that
// no node passes on more than twice in each direction.
TEST(DoubleBinaryTree, ReachesEveryNodeInBothTreesAndSharesTheInnerWork) {
  for (std::int64_t nodes = 2; nodes <= 70; ++nodes) {
    const std::vector<TreeEdge> edges = double_binary_tree(nodes);
    ASSERT_EQ(edges.size(), static_cast<std::size_t>(2 * (nodes - 1)));
    for (std::size_t tree = 0; tree < 2; ++tree) {
      std::map<std::int64_t, std::int64_t> parent;
      std::map<std::int64_t, int> children;
      for (std::size_t i = tree; i < edges.size(); i += 2) {
        EXPECT_TRUE(parent.emplace(edges[i].child, edges[i].parent).second);
        EXPECT_LE(++children[edges[i].parent], 2 + (nodes == 2));
      }
      EXPECT_EQ(parent.size(), static_cast<std::size_t>(nodes - 1));
      for (std::int64_t node = 0; node < nodes; ++node) {
        std::int64_t at = node;
        int hops = 0;
        while (parent.count(at) != 0 && hops <= nodes) {
          at = parent[at];
          ++hops;
        }
        EXPECT_LE(hops, 8) << nodes;  // ends at the root, logarithmically far
      }
    }
    std::map<std::int64_t, int> degree;
    for (const TreeEdge& edge : edges) {
      ++degree[edge.child];
      ++degree[edge.parent];
    }
    for (const auto& [node, count] : degree) EXPECT_LE(count, 5) << nodes << " " << node;
  }
}

TEST(LinkLoad, TreeMovesThePayloadUpAndDownEveryEdge) {
  const Cluster cluster = cluster_of(a100(4));
  const auto loads =
      routed_bytes(cluster, Algorithm::kTree, CollectiveKind::kAllReduce, devices(4, 8));
  double out = 0;
  for (const LinkLoad& load : loads) {
    if (from_kind(cluster, load.link) == VertexKind::kGpu) out += load.weight;
  }
  EXPECT_NEAR(out, 2 * 3, 1e-12);  // n-1 edges, up and down, whatever the tree
}

// The busiest link is full when the collective runs as fast as NCCL can.
TEST(LinkLoad, ChargesTheFractionThatNcclReaches) {
  const Cluster cluster = cluster_of(a100(1));
  const CollectiveCosts costs(cluster, shipped_profiles());
  const auto members = devices(8);
  const CollectivePrice price =
      costs.price(CollectiveKind::kAllReduce, ByteCount{8} << 30, DataType::kBf16, members);
  const auto loads = costs.loads(price, CollectiveKind::kAllReduce, members);
  ASSERT_FALSE(loads.empty());
  for (const LinkLoad& load : loads) {
    EXPECT_NEAR(load.weight * price.rate_bound.value(), 300e9, 300e9 * 0.001);
  }
}

// 4 NICs for 8 GPUs: the data groups of GPU 0 and GPU 1 both use NIC 0. Each alone fills it; both
// together get half each, as the sum of weight x rate on the NIC must stay within 25 GB/s.
TEST(LinkLoad, TwoGroupsOnOneNicGetHalfEach) {
  ClusterSpec spec = a100(4);
  spec.nics_per_node = 4;
  const Cluster cluster = cluster_of(spec);
  const CollectiveCosts costs(cluster, shipped_profiles());
  const ByteCount size = ByteCount{4} << 30;
  const auto load_on_nics = [&](std::int64_t first) {
    const auto members = devices(4, 8, first);
    const CollectivePrice price =
        costs.price(CollectiveKind::kAllReduce, size, DataType::kBf16, members);
    std::map<std::int32_t, double> use;  // of the NICs' capacity, by link, at full rate
    for (const LinkLoad& load : costs.loads(price, CollectiveKind::kAllReduce, members)) {
      const Link& link = cluster.topology.links()[load.link.index()];
      if (link.kind != LinkKind::kNic) continue;
      use[load.link.value] = load.weight * price.rate_bound.value() / link.capacity.value();
    }
    return use;
  };
  const auto first = load_on_nics(0);
  const auto second = load_on_nics(1);
  ASSERT_FALSE(first.empty());
  for (const auto& [link, use] : first) {
    EXPECT_NEAR(use, 1, 0.005);
    ASSERT_EQ(second.count(link), 1u);
    EXPECT_NEAR(second.at(link), 1, 0.005);
  }
  EXPECT_EQ(load_on_nics(2).count(first.begin()->first), 0u);
}

// A spine that is slower than the NICs sets the pace itself, below what NCCL would reach: four
// times slower it carries a quarter of what NICs do that set the pace.
TEST(LinkLoad, AnOversubscribedSpineSetsThePace) {
  const auto rate_of = [](double oversubscription) {
    ClusterSpec spec = a100(4);
    spec.nodes_per_leaf_group = 1;
    spec.oversubscription = oversubscription;
    const Cluster cluster = cluster_of(spec);
    const CollectiveCosts costs(cluster, shipped_profiles());
    const auto members = devices(32);
    const CollectivePrice price =
        costs.price(CollectiveKind::kAllGather, ByteCount{16} << 30, DataType::kBf16, members);
    double rate = price.rate_bound.value();
    for (const LinkLoad& load : costs.loads(price, CollectiveKind::kAllGather, members)) {
      const double capacity = cluster.topology.links()[load.link.index()].capacity.value();
      rate = std::min(rate, capacity / load.weight);
    }
    return rate;
  };
  EXPECT_NEAR(rate_of(4) / rate_of(1), 0.25, 0.0025);
  // An eighth of 31/32 of the payload on each rail's uplink of 25/4 GB/s, of which NCCL counts on
  // 24 of 25.
  EXPECT_LE(rate_of(4), 0.97 * 6.25e9 / (31.0 / 32 / 8));
}

// One capacity between nodes in two ways: NICs of a quarter, which price the group, and uplinks for
// a quarter of the NICs, for which it waits.
TEST(LinkLoad, ATrunkCarriesWhatNicsOfItsCapacityDo) {
  ClusterSpec whole = a100(4);
  whole.nodes_per_leaf_group = 1;
  const auto rate_of = [](const ClusterSpec& spec) {
    const Cluster cluster = cluster_of(spec);
    const CollectiveCosts costs(cluster, shipped_profiles());
    const auto members = devices(32);
    const CollectivePrice price =
        costs.price(CollectiveKind::kAllGather, ByteCount{16} << 30, DataType::kBf16, members);
    const auto loads = costs.loads(price, CollectiveKind::kAllGather, members);
    return rate_at_once(cluster.topology, price.rate_bound, {&loads, 1}).value();
  };
  ClusterSpec slow_nics = whole, slow_uplinks = whole;
  slow_nics.nic_bandwidth = whole.nic_bandwidth / 4;
  slow_uplinks.oversubscription = 4;
  EXPECT_NEAR(rate_of(slow_uplinks) / rate_of(slow_nics), 1, 0.02);
  // No rate of the uplinks is a step: less of them is never faster, and little less costs little.
  double before = rate_of(whole);
  for (double ratio = 1.01; ratio < 4; ratio *= 1.01) {
    slow_uplinks.oversubscription = ratio;
    const double now = rate_of(slow_uplinks);
    EXPECT_LE(now, before * (1 + 1e-9)) << ratio;
    EXPECT_GE(now, before / 1.011) << ratio;
    before = now;
  }
}

// Two GPUs without NVLink or switch between them: over the PCIe switch they share.
TEST(LinkLoad, FollowsTheRoutesOfAHandMadeGraph) {
  Cluster cluster;
  cluster.spec = a100(1);
  cluster.spec.gpus = cluster.spec.gpus_per_node = 2;
  const VertexId a = cluster.topology.add_vertex({VertexKind::kGpu, 0, 0});
  const VertexId b = cluster.topology.add_vertex({VertexKind::kGpu, 0, 1});
  const VertexId pcie = cluster.topology.add_vertex({VertexKind::kPcieSwitch, 0, 0});
  cluster.topology.add_cable({a, pcie, LinkKind::kPcie, BytesPerSecond(30e9), Seconds()});
  cluster.topology.add_cable({b, pcie, LinkKind::kPcie, BytesPerSecond(30e9), Seconds()});
  const auto loads =
      routed_bytes(cluster, Algorithm::kRing, CollectiveKind::kAllReduce, devices(2));
  EXPECT_EQ(loads.size(), 4u);
  for (const LinkLoad& load : loads) EXPECT_NEAR(load.weight, 1, 1e-12);
  const auto send = routed_bytes_of_send(cluster, DeviceId(0), DeviceId(1));
  EXPECT_EQ(send.size(), 2u);
}

TEST(LinkLoad, SendsLoadTheirOwnPathOnly) {
  const Cluster cluster = cluster_of(a100(2));
  const CollectiveCosts costs(cluster, shipped_profiles());
  const CollectivePrice price = costs.price_send(ByteCount{1} << 30, DeviceId(3), DeviceId(11));
  const auto loads = costs.loads_of_send(DeviceId(3), DeviceId(11));
  const std::vector<double> nics = weights_of(cluster, loads, LinkKind::kNic);
  ASSERT_FALSE(nics.empty());
  for (const double weight : nics) {
    EXPECT_NEAR(weight * price.rate_bound.value(), 25e9, 25e9 * 0.01);
  }
}

// `gpus` GPUs with a link of 64 GB/s to each other one.
ClusterSpec mesh(std::int64_t gpus, std::int64_t nodes) {
  ClusterSpec spec = a100(nodes);
  spec.scale_up = ScaleUp::kNvlinkMesh;
  spec.scale_up_bandwidth = BytesPerSecond(64e9 * static_cast<double>(gpus - 1));
  spec.gpus_per_node = spec.nics_per_node = gpus;
  spec.gpus = gpus * nodes;
  return spec;
}

// Rings in all orders: (n-1)/n bytes leave each of n members over n-1 links alike.
TEST(LinkLoad, ARingOverPairwiseLinksUsesAllOfThem) {
  const Cluster cluster = cluster_of(mesh(8, 1));
  for (const std::int64_t n : {2, 3, 4, 8}) {
    const auto loads =
        routed_bytes(cluster, Algorithm::kRing, CollectiveKind::kAllGather, devices(n));
    EXPECT_EQ(loads.size(), static_cast<std::size_t>(n * (n - 1)));
    for (const LinkLoad& load : loads) {
      EXPECT_NEAR(load.weight, 1 / static_cast<double>(n), 1e-12);
      EXPECT_EQ(cluster.topology.links()[load.link.index()].kind, LinkKind::kNvlink);
    }
  }
}

// A cable between two of three GPUs that is twice as wide carries twice as much of a ring.
TEST(LinkLoad, ARingOverPairwiseLinksFillsWideCablesAsNarrowOnes) {
  Cluster cluster;
  cluster.spec = mesh(3, 1);
  std::vector<VertexId> gpus;
  for (std::int32_t i = 0; i < 3; ++i) {
    gpus.push_back(cluster.topology.add_vertex({VertexKind::kGpu, 0, i}));
  }
  const auto join = [&](std::size_t a, std::size_t b, double rate) {
    cluster.topology.add_cable({gpus[a], gpus[b], LinkKind::kNvlink, BytesPerSecond(rate), {}});
  };
  join(0, 1, 100e9);
  join(1, 2, 50e9);
  join(2, 0, 50e9);
  const auto loads =
      routed_bytes(cluster, Algorithm::kRing, CollectiveKind::kAllGather, devices(3));
  ASSERT_EQ(loads.size(), 6u);
  const auto weight = [&](std::int32_t from, std::int32_t to) {
    for (const LinkLoad& load : loads) {
      const Link& link = cluster.topology.links()[load.link.index()];
      if (link.from == gpus[static_cast<std::size_t>(from)] &&
          link.to == gpus[static_cast<std::size_t>(to)]) {
        return load.weight;
      }
    }
    return 0.0;
  };
  EXPECT_NEAR(weight(0, 1), 2.0 / 3 * 2 / 3, 1e-12);
  EXPECT_NEAR(weight(0, 2), 2.0 / 3 * 1 / 3, 1e-12);
  EXPECT_NEAR(weight(2, 0), 2.0 / 3 * 1 / 2, 1e-12);
}

// The links that the graph has carry what NCCL reaches alone.
TEST(LinkLoad, ACollectiveIsNotItsOwnContention) {
  const ClusterSpec specs[] = {a100(1), a100(2), h100(2), mesh(4, 1), mesh(4, 2), mesh(8, 1)};
  for (const ClusterSpec& spec : specs) {
    const Cluster cluster = cluster_of(spec);
    const CollectiveCosts costs(cluster, shipped_profiles());
    for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                      CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll}) {
      for (std::int64_t n = 2; n <= spec.gpus; n *= 2) {
        const auto members = devices(n);
        const CollectivePrice price =
            costs.price(kind, ByteCount{1} << 30, DataType::kBf16, members);
        for (const LinkLoad& load : each_of(costs.loads(price, kind, members))) {
          const double capacity = cluster.topology.links()[load.link.index()].capacity.value();
          EXPECT_LE(load.weight * price.rate_bound.value() / capacity, 1 + 1e-9)
              << name_of(spec.scale_up) << " of " << spec.gpus << ", " << n << " members, kind "
              << static_cast<int>(kind);
        }
      }
    }
  }
}

TEST(LinkLoad, BigGroupsStayRegular) {
  const Cluster cluster = cluster_of(a100(256));
  const auto loads =
      routed_bytes(cluster, Algorithm::kRing, CollectiveKind::kAllGather, devices(2048));
  const std::vector<double> nvlink = weights_of(cluster, loads, LinkKind::kNvlink);
  EXPECT_EQ(nvlink.size(), 2u * 2048);
  EXPECT_NEAR(total(nvlink), 2 * 2047.0 / 2048 * 7 / 8 * 2048, 1e-6);
}

}  // namespace
}  // namespace stepcast
