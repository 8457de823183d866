// SPDX-License-Identifier: Apache-2.0
// docs/formats/cluster.md, "Fabrics": flows that each take one uplink by a hash.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "cluster/cluster_from.h"
#include "cluster/repeated_units.h"
#include "cluster/write_cluster.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "cost/link_load.h"

namespace stepcast {
namespace {

using testing::cluster_from;

constexpr double kNic = 50e9;

// Two leaves with `side` nodes of one GPU and one NIC each, and as much up as down.
Cluster two_leaves(int side, const std::string& keys) {
  return cluster_from(fmt::format(R"({{"base": "dgx-h100", "gpus_per_node": 1, "nics_per_node": 1,
      "nodes": {}, "nodes_per_leaf_group": {}{}}})",
                                  2 * side, side, keys));
}

Cluster hashed(int side, int uplinks, int seed, int flows = 1) {
  return two_leaves(side, fmt::format(R"(, "ecmp": "hashed", "uplinks": {}, "ecmp_seed": {},
      "ecmp_flows": {})",
                                      uplinks, seed, flows));
}

// By uplink: how much of these sends goes over it, of each node of one leaf to its like.
std::vector<double> loads_of_uplinks(const Cluster& cluster, int side) {
  std::map<LinkId, double> loads;
  for (int i = 0; i < side; ++i) {
    for (const LinkLoad& load : routed_bytes_of_send(cluster, DeviceId(i), DeviceId(side + i))) {
      const Link& link = cluster.topology.links()[load.link.index()];
      const Vertex& to = cluster.topology.vertices()[link.to.index()];
      if (to.kind == VertexKind::kSpine) loads[load.link] += load.weight;
    }
  }
  std::vector<double> out;
  for (const auto& [link, load] : loads) out.push_back(load);
  return out;
}

// Each of two uplinks carries one NIC's rate. Two flows that take the same one have half of it each
// and so take twice as long; on different ones each has all. Half of the seeds do either.
TEST(HashedFlows, TwoOnOneOfTwoUplinksTakeTwiceAsLong) {
  constexpr int kSeeds = 400;
  int together = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Cluster cluster = hashed(2, 2, seed);
    const std::vector<LinkLoad> flows[] = {routed_bytes_of_send(cluster, DeviceId(0), DeviceId(2)),
                                           routed_bytes_of_send(cluster, DeviceId(1), DeviceId(3))};
    const double rate = rate_at_once(cluster.topology, BytesPerSecond(1e30), flows).value();
    const bool meet = loads_of_uplinks(cluster, 2).size() == 1;
    EXPECT_DOUBLE_EQ(rate, meet ? kNic / 2 : kNic) << seed;
    together += meet ? 1 : 0;
  }
  EXPECT_NEAR(together, kSeeds / 2, 5 * std::sqrt(kSeeds) / 2);
}

// The largest load of n flows, each on one of k uplinks with equal chance: counted over all k^n
// ways to place them.
struct Largest {
  double mean = 0, deviation = 0;
};
Largest largest_load(int flows, int uplinks) {
  const int ways = static_cast<int>(std::lround(std::pow(uplinks, flows)));
  double sum = 0, squares = 0;
  for (int way = 0; way < ways; ++way) {
    std::vector<int> loads(static_cast<std::size_t>(uplinks), 0);
    for (int rest = way, flow = 0; flow < flows; ++flow, rest /= uplinks) {
      ++loads[static_cast<std::size_t>(rest % uplinks)];
    }
    const double most = *std::ranges::max_element(loads);
    sum += most;
    squares += most * most;
  }
  const double mean = sum / ways;
  return {mean, std::sqrt(squares / ways - mean * mean)};
}

TEST(HashedFlows, LargestLoadIsThatOfBallsInUrns) {
  EXPECT_DOUBLE_EQ(largest_load(2, 2).mean, 1.5);
  EXPECT_DOUBLE_EQ(largest_load(3, 3).mean, (6 * 1 + 18 * 2 + 3 * 3) / 27.0);
  for (const auto& [flows, uplinks] :
       std::vector<std::pair<int, int>>{{2, 2}, {4, 2}, {4, 4}, {6, 3}, {8, 4}}) {
    constexpr int kSeeds = 600;
    double sum = 0;
    for (int seed = 0; seed < kSeeds; ++seed) {
      sum += std::ranges::max(loads_of_uplinks(hashed(flows, uplinks, seed), flows));
    }
    const Largest expected = largest_load(flows, uplinks);
    EXPECT_NEAR(sum / kSeeds, expected.mean, 4 * expected.deviation / std::sqrt(kSeeds))
        << flows << " flows on " << uplinks;
  }
}

// With many flows from each GPU the loads come near to even ones, n / k on each.
TEST(HashedFlows, ManyOfThemSpreadEvenly) {
  const std::vector<double> loads = loads_of_uplinks(hashed(8, 4, 7, 1024), 8);
  ASSERT_EQ(loads.size(), 4u);
  for (const double load : loads) EXPECT_NEAR(load, 2, 0.15);
}

// All loads together are what was sent, whichever way it goes, up and down.
TEST(HashedFlows, LoseNothing) {
  for (int seed = 0; seed < 50; ++seed) {
    double sum = 0;
    for (const double load : loads_of_uplinks(hashed(6, 3, seed, 3), 6)) sum += load;
    EXPECT_NEAR(sum, 6, 1e-12);
  }
}

TEST(HashedFlows, TakeTheSameWaysForTheSameSeed) {
  std::map<std::vector<double>, int> differing;
  for (int seed = 0; seed < 20; ++seed) {
    const Cluster one = hashed(4, 4, seed);
    const Cluster again = cluster_from(json_text(to_json(one)));
    EXPECT_EQ(loads_of_uplinks(one, 4), loads_of_uplinks(again, 4));
    ++differing[loads_of_uplinks(one, 4)];
  }
  EXPECT_GT(differing.size(), 3u);
}

// One uplink leaves no choice, and is the trunk of a cluster without a hash.
TEST(HashedFlows, OnOneUplinkAreEven) {
  const Cluster even = two_leaves(4, "");
  EXPECT_EQ(loads_of_uplinks(hashed(4, 1, 3), 4), loads_of_uplinks(even, 4));
  EXPECT_EQ(json_text(graph_file(hashed(4, 1, 3))), json_text(graph_file(even)));
}

// Ranks that lie alike do not carry alike, so nothing is taken to repeat.
TEST(HashedFlows, LeaveNoUnitsThatRepeat) {
  EXPECT_EQ(find_units(two_leaves(4, "").topology, 1).count, 8);
  EXPECT_EQ(find_units(hashed(4, 2, 0).topology, 1).count, 0);
}

// A spine that has failed leaves its flows to the others.
TEST(HashedFlows, GoOverTheUplinksThatAreLeft) {
  const Cluster cut = two_leaves(4, R"(, "ecmp": "hashed", "uplinks": 2, "fail": "spine1")");
  EXPECT_EQ(loads_of_uplinks(cut, 4), std::vector<double>{4});
}

// Whatever fails, the others keep their ways: no uplink carries less than before.
TEST(HashedFlows, StayWhereTheyAreWhenAnotherCableFails) {
  for (int seed = 0; seed < 40; ++seed) {
    const std::string keys =
        fmt::format(R"(, "ecmp": "hashed", "uplinks": 3, "ecmp_seed": {})", seed);
    const auto by_spine = [](const Cluster& cluster) {
      std::map<std::string, double> loads;
      for (int i = 0; i < 6; ++i) {
        for (const LinkLoad& load : routed_bytes_of_send(cluster, DeviceId(i), DeviceId(6 + i))) {
          const Link& link = cluster.topology.links()[load.link.index()];
          const Vertex& to = cluster.topology.vertices()[link.to.index()];
          if (to.kind == VertexKind::kSpine) loads[cluster.topology.name(link.to)] += load.weight;
        }
      }
      return loads;
    };
    auto whole = by_spine(two_leaves(6, keys));
    const auto cut = by_spine(two_leaves(6, keys + R"(, "fail": "leaf0-spine1")"));
    EXPECT_FALSE(cut.contains("spine1"));
    for (const auto& [spine, load] : cut) EXPECT_GE(load, whole[spine]) << spine;
  }
}

TEST(HashedFlows, KeysThatDoNotGoTogetherAreRefused) {
  for (const auto& [keys, expected] : std::vector<std::pair<std::string, std::string>>{
           {R"("ecmp": "hashed")", "cluster.uplinks"},
           {R"("uplinks": 4)", "cluster.uplinks"},
           {R"("ecmp_seed": 4)", "cluster.ecmp_seed"},
           {R"("ecmp": "hashed", "uplinks": 0)", "cluster.uplinks"},
           {R"("ecmp": "random", "uplinks": 2)", "cluster.ecmp"},
           {R"("fabric": "torus", "torus": [4], "router_link": "1 GB/s", "ecmp": "hashed",
              "uplinks": 2)",
            "cluster.ecmp"}}) {
    const Errors errors = testing::read(R"({"base": "dgx-h100", "nodes": 4, )" + keys + "}").errors;
    const std::string& path = expected;
    const bool named =
        std::ranges::any_of(errors, [&](const Error& error) { return error.path == path; });
    EXPECT_TRUE(named) << keys << to_string(errors);
  }
}

}  // namespace
}  // namespace stepcast
