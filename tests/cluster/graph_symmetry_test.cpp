// SPDX-License-Identifier: Apache-2.0
#include "cluster/graph_symmetry.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "cluster/cluster.h"
#include "random_choice.h"

namespace stepcast {
namespace {

using testing::pick;

ClusterSpec nodes_of_eight(std::int64_t nodes) {
  ClusterSpec spec;
  spec.nodes = nodes;
  spec.gpus = 8 * nodes;
  spec.scale_up_bandwidth = BytesPerSecond(450e9);
  spec.nic_bandwidth = BytesPerSecond(50e9);
  spec.pcie_bandwidth = BytesPerSecond(63e9);
  return spec;
}

std::vector<std::int32_t> turned(std::int64_t count, std::int64_t step) {
  std::vector<std::int32_t> out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(static_cast<std::int32_t>((i + step) % count));
  }
  return out;
}

std::map<LinkId, double> carried(const std::vector<LinkShare>& route, const GraphSymmetry& by) {
  std::map<LinkId, double> out;
  for (const LinkShare& share : route) out[by(share.link)] += share.fraction;
  return out;
}

std::map<LinkId, double> shares(const std::vector<LinkShare>& route) {
  std::map<LinkId, double> out;
  for (const LinkShare& share : route) out[share.link] += share.fraction;
  return out;
}

TEST(RepeatedUnits, AreTheNodesOfARegularCluster) {
  ClusterSpec spec = nodes_of_eight(12);
  spec.nodes_per_leaf_group = 4;
  const Topology graph = build_topology(spec);
  const RepeatedUnits units = find_units(graph, spec.gpus_per_domain());
  EXPECT_EQ(units.count, 12);
  EXPECT_EQ(units.devices, 8);
  EXPECT_EQ(units.vertices, 8 + 1 + 1 + 8 + 8);     // GPUs, NVSwitch, host, PCIe switches, NICs
  EXPECT_EQ(units.links, 2 * (8 + 8 + 8 + 8 + 8));  // to NVSwitch, PCIe, host, NIC, leaf
}

TEST(RepeatedUnits, AreNVLinkDomainsOfSeveralNodes) {
  ClusterSpec spec = nodes_of_eight(8);
  spec.gpus_per_node = 4;
  spec.nics_per_node = 4;
  spec.gpus = 32;
  spec.nvlink_domain_nodes = 2;
  const RepeatedUnits units = find_units(build_topology(spec), spec.gpus_per_domain());
  EXPECT_EQ(units.count, 4);
  EXPECT_EQ(units.devices, 8);
}

TEST(RepeatedUnits, AreNoneWhereANodeDiffers) {
  ClusterSpec part = nodes_of_eight(3);
  part.gpus = 20;  // the last node is half used
  EXPECT_EQ(find_units(build_topology(part), 8).count, 0);
  ClusterSpec spec = nodes_of_eight(3);
  Topology graph = build_topology(spec);
  graph.add_link({graph.gpus()[0], graph.gpus()[1], LinkKind::kNvlink, BytesPerSecond(1e9), {}});
  EXPECT_EQ(find_units(graph, 8).count, 0);
}

TEST(GraphSymmetry, MovesNodesByWholeLeafGroupsAlone) {
  ClusterSpec spec = nodes_of_eight(12);
  spec.nodes_per_leaf_group = 4;
  const Topology graph = build_topology(spec);
  const RepeatedUnits units = find_units(graph, 8);
  EXPECT_FALSE(GraphSymmetry::of_units(graph, units, turned(12, 1)));
  EXPECT_FALSE(GraphSymmetry::of_units(graph, units, turned(12, 2)));
  EXPECT_TRUE(GraphSymmetry::of_units(graph, units, turned(12, 4)));
  // Inside one group of leaves nodes may change places.
  std::vector<std::int32_t> two = turned(12, 0);
  std::swap(two[1], two[2]);
  EXPECT_TRUE(GraphSymmetry::of_units(graph, units, two));
  std::swap(two[3], two[4]);
  EXPECT_FALSE(GraphSymmetry::of_units(graph, units, two));
}

TEST(GraphSymmetry, TurnsRailsTogetherWithTheirNics) {
  ClusterSpec spec = nodes_of_eight(4);
  for (const std::int64_t nics : {8, 4, 2}) {
    spec.nics_per_node = nics;
    const Topology graph = build_topology(spec);
    const RepeatedUnits units = find_units(graph, 8);
    ASSERT_EQ(units.count, 4);
    for (std::int64_t step = 1; step < 8; ++step) {
      const bool is_symmetry =
          GraphSymmetry::inside_units(graph, units, turned(8, step)).has_value();
      EXPECT_EQ(is_symmetry, step % (8 / nics) == 0) << nics << " NICs, by " << step;
    }
  }
}

// Nodes of a torus may be turned along its dimensions, and those of a dragonfly by whole groups.
TEST(GraphSymmetry, TurnsNodesOfOtherFabrics) {
  ClusterSpec spec = nodes_of_eight(12);
  spec.fabric.kind = FabricKind::kTorus;
  spec.fabric.torus = {12};
  spec.fabric.router_link = BytesPerSecond(25e9);
  const auto is_symmetry = [&](std::int64_t step) {
    const Topology graph = build_topology(spec);
    const RepeatedUnits units = find_units(graph, 8);
    return GraphSymmetry::of_units(graph, units, turned(12, step)).has_value();
  };
  EXPECT_TRUE(is_symmetry(1));
  spec.fabric.torus = {4, 3};  // the first dimension runs fastest
  EXPECT_FALSE(is_symmetry(1));
  EXPECT_TRUE(is_symmetry(4));
  spec.fabric.kind = FabricKind::kDragonfly;
  spec.fabric.routers_per_group = 3;
  spec.fabric.global_link = BytesPerSecond(10e9);
  EXPECT_FALSE(is_symmetry(1));
  EXPECT_TRUE(is_symmetry(3));
}

// Another fabric than a tree of joined rails, or that.
void put_fabric(std::mt19937& random, ClusterSpec& spec) {
  Fabric& fabric = spec.fabric;
  fabric.planes = pick(random, {1, 1, 2});
  fabric.rails_joined = !spec.rail_optimised || pick(random, {0, 1, 1}) == 1;
  fabric.router_link = BytesPerSecond(25e9);
  fabric.global_link = BytesPerSecond(10e9);
  const int kind = pick(random, {0, 0, 1, 2});
  if (kind > 0) fabric.rails_joined = true;
  if (kind == 1) {
    fabric.kind = FabricKind::kTorus;
    fabric.torus = {spec.nodes / 2, 2};
  } else if (kind == 2) {
    fabric.kind = FabricKind::kDragonfly;
    fabric.routers_per_group = pick(random, {1, 2});
  }
}

TEST(GraphSymmetry, CarriesEveryRouteToARoute) {
  std::mt19937 random(20261126);
  int found = 0, others = 0;
  for (int i = 0; i < 150; ++i) {
    ClusterSpec spec = nodes_of_eight(pick(random, {4, 8}));
    spec.nics_per_node = pick(random, {1, 2, 4, 8});
    spec.rail_optimised = pick(random, {0, 1}) == 1;
    spec.nodes_per_leaf_group = pick(random, {1, 2, 4});
    spec.pod_nodes = pick(random, {0, 4});
    spec.scale_up = pick(random, {0, 1}) == 0 ? ScaleUp::kNvSwitch : ScaleUp::kPcie;
    put_fabric(random, spec);
    const Topology graph = build_topology(spec);
    const RepeatedUnits units = find_units(graph, 8);
    ASSERT_GT(units.count, 0);
    const bool inside = pick(random, {0, 1}) == 0;
    const int step = pick(random, {1, 2, 4});
    const auto symmetry =
        inside ? GraphSymmetry::inside_units(graph, units, turned(8, step))
               : GraphSymmetry::of_units(graph, units, turned(units.count, step % units.count));
    if (!symmetry) continue;
    ++found;
    const Fabric& fabric = spec.fabric;
    const bool is_tree = fabric.kind == FabricKind::kFatTree;
    others += fabric.planes > 1 || !fabric.rails_joined || !is_tree ? 1 : 0;
    const auto carried_device = [&](std::int32_t device) {
      return DeviceId(symmetry->unit(device / 8) * 8 + symmetry->device_in_unit(device % 8));
    };
    std::uniform_int_distribution<std::int32_t> any(0, static_cast<std::int32_t>(spec.gpus) - 1);
    for (int pair = 0; pair < 30; ++pair) {
      const std::int32_t from = any(random);
      const std::int32_t to = any(random);
      const auto expected = shares(graph.route(carried_device(from), carried_device(to)));
      const auto actual = carried(graph.route(DeviceId(from), DeviceId(to)), *symmetry);
      ASSERT_EQ(actual.size(), expected.size());
      for (const auto& [link, share] : expected) {
        ASSERT_TRUE(actual.contains(link));
        EXPECT_NEAR(actual.at(link), share, 1e-12);
      }
    }
  }
  EXPECT_GT(found, 50);
  EXPECT_GT(others, 25);
}

}  // namespace
}  // namespace stepcast
