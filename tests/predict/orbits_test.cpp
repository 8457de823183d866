// SPDX-License-Identifier: Apache-2.0
// Orbits of a cluster and a layout: what is placed once for each of them is what is placed for
// every group and pair, and folds to the same classes.
#include "predict/orbits.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "cost/collective_cost.h"
#include "predict/symmetry.h"
#include "predict/traffic.h"
#include "program/program.h"
#include "random_choice.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::GptCase;
using testing::pick;
using testing::scenario_from;
using testing::source_folders;
using testing::text_of;

// Nodes under leaves of one to four nodes, so that some layouts lie alike under them.
std::string random_scenario(std::mt19937& random) {
  GptCase c;
  c.framework = "megatron";
  c.tp = pick(random, {1, 2, 4, 8});
  c.pp = pick(random, {1, 2, 4});
  c.dp = pick(random, {1, 2, 3, 4, 8, 16});
  c.zero = pick(random, {0, 1});
  if (pick(random, {0, 1, 2}) == 0) {  // sharded in groups of neighbours
    c.framework = "fsdp";
    c.pp = 1;
    c.zero = 3;
    const int part = pick(random, {0, 2, 4});
    if (part > 0 && c.dp % part == 0) {
      c.extra_layout = fmt::format(R"(, "shard_group": {})", part);
    }
  } else {
    c.extra_layout = fmt::format(
        R"(, "order": "{}")", pick(random, {0, 1, 1}) == 1 ? "tp-cp-ep-dp-pp" : "tp-cp-ep-pp-dp");
  }
  c.sequence_parallel = c.tp > 1 && pick(random, {0, 1}) == 1;
  c.layers = c.pp * pick(random, {1, 2});
  c.hidden = pick(random, {256, 1024});
  c.global_batch = c.dp * c.pp;
  const int nics = pick(random, {1, 2, 4, 8});
  const int leaf = pick(random, {1, 2, 4});
  const int pods = pick(random, {0, 0, 2});
  c.cluster = fmt::format(
      R"("base": "{}", "nics_per_node": {}, "nodes_per_leaf_group": {}, "oversubscription": {},
      "pod_nodes": {}, "rail_optimised": {})",
      pick(random, {0, 1}) == 0 ? "dgx-a100-80g" : "dgx-h100", nics, leaf, pick(random, {1, 2}),
      pods * leaf, pick(random, {0, 1, 1}) == 0 ? "false" : "true");
  return text_of(c);
}

struct Placed {
  explicit Placed(const Scenario& of)
      : scenario(of),
        grid(of.layout),
        program(lower(of)),
        costs(of.cluster, source_folders().profiles),
        units(find_units(of.cluster.topology, of.cluster.spec.gpus_per_domain())),
        whole(place_traffic(of, program, grid, costs)),
        by_orbits(place_traffic(of, program, grid, costs, kNoStamps, units)) {}

  const Scenario& scenario;
  RankGrid grid;
  Program program;
  CollectiveCosts costs;
  RepeatedUnits units;
  Traffic whole, by_orbits;
};

// Bytes/s on each link when all groups and pairs send at once.
std::vector<double> demand_of(const Traffic& traffic, std::size_t links) {
  std::vector<double> out(static_cast<std::size_t>(traffic.orbits.link_orbits()), 0);
  const auto add = [&](const std::vector<LinkLoad>& loads, double times) {
    for (const LinkLoad& load : loads) {
      const std::int32_t orbit = traffic.orbits.link_orbit(load.link);
      out[static_cast<std::size_t>(orbit)] +=
          load.weight * times / traffic.orbits.links_alike(orbit);
    }
  };
  for (const GroupTraffic& groups : traffic.groups) {
    for (const GroupOrbit& orbit : groups.orbits) {
      for (const auto& loads : orbit.loads) add(loads, static_cast<double>(orbit.groups));
    }
  }
  for (const PairTraffic& pairs : traffic.pairs) {
    for (const PairOrbit& pair : pairs.orbits) add(pair.loads, static_cast<double>(pair.pairs));
  }
  std::vector<double> by_link;
  for (std::size_t l = 0; l < links; ++l) {
    by_link.push_back(out[static_cast<std::size_t>(traffic.orbits.link_orbit(LinkId(l)))]);
  }
  return by_link;
}

// The loads of one class of groups or pairs: capacity and weight of each link class, in order.
std::vector<std::pair<double, double>> in_order(const std::vector<ClassLoad>& loads,
                                                const Symmetry& symmetry) {
  std::vector<std::pair<double, double>> out;
  for (const ClassLoad& load : loads) {
    out.emplace_back(symmetry.link_capacity[static_cast<std::size_t>(load.link_class)],
                     load.weight);
  }
  std::ranges::sort(out);
  return out;
}

void expect_same_loads(const std::vector<ClassLoad>& a, const Symmetry& of_a,
                       const std::vector<ClassLoad>& b, const Symmetry& of_b,
                       const std::string& text) {
  const auto one = in_order(a, of_a), other = in_order(b, of_b);
  ASSERT_EQ(one.size(), other.size()) << text;
  for (std::size_t l = 0; l < one.size(); ++l) {
    EXPECT_EQ(one[l].first, other[l].first) << text;
    EXPECT_NEAR(one[l].second, other[l].second, 1e-9 * one[l].second) << text;
  }
}

// Classes are numbered by their lowest ranks, so those of both are in one order.
void expect_same_classes(const Symmetry& a, const Symmetry& b, const std::string& text) {
  EXPECT_EQ(a.class_of_rank, b.class_of_rank) << text;
  EXPECT_EQ(a.link_capacity.size(), b.link_capacity.size()) << text;
  ASSERT_EQ(a.groups.size(), b.groups.size()) << text;
  for (std::size_t k = 0; k < a.groups.size(); ++k) {
    ASSERT_EQ(a.groups[k].loads.size(), b.groups[k].loads.size()) << text;
    for (std::size_t c = 0; c < a.groups[k].loads.size(); ++c) {
      ASSERT_EQ(a.groups[k].loads[c].size(), b.groups[k].loads[c].size()) << text;
      for (std::size_t d = 0; d < a.groups[k].loads[c].size(); ++d) {
        expect_same_loads(a.groups[k].loads[c][d], a, b.groups[k].loads[c][d], b, text);
      }
    }
  }
  ASSERT_EQ(a.pairs.size(), b.pairs.size()) << text;
  for (std::size_t k = 0; k < a.pairs.size(); ++k) {
    ASSERT_EQ(a.pairs[k].loads.size(), b.pairs[k].loads.size()) << text;
    for (std::size_t c = 0; c < a.pairs[k].loads.size(); ++c) {
      expect_same_loads(a.pairs[k].loads[c], a, b.pairs[k].loads[c], b, text);
    }
  }
}

TEST(Orbits, LoadLinksAndFoldAsAllGroupsAndPairsDo) {
  std::mt19937 random(20261126);
  std::size_t fewer = 0, moved = 0;
  for (int i = 0; i < 150; ++i) {
    const std::string text = random_scenario(random);
    const Scenario scenario = scenario_from(text);
    const Placed placed(scenario);
    const Orbits& orbits = placed.by_orbits.orbits;
    fewer += orbits.count() < placed.grid.size() ? 1 : 0;
    moved += orbits.symmetries() > 1 ? 1 : 0;
    const std::size_t links = scenario.cluster.topology.links().size();
    const std::vector<double> whole = demand_of(placed.whole, links);
    const std::vector<double> by_orbits = demand_of(placed.by_orbits, links);
    for (std::size_t l = 0; l < links; ++l) {
      EXPECT_NEAR(whole[l], by_orbits[l], 1e-9 * (1 + whole[l])) << text << " link " << l;
    }
    expect_same_classes(find_symmetry(scenario, placed.grid, placed.whole, placed.costs, true),
                        find_symmetry(scenario, placed.grid, placed.by_orbits, placed.costs, true),
                        text);
  }
  EXPECT_GT(fewer, 50U) << "no cluster had a symmetry to use";
  EXPECT_GT(moved, 10U) << "none had two";
}

// 16 nodes of 8, four under a leaf group, as 2 stages of 8 data replicas: replicas may move by a
// leaf group, and all rails turn together. Four orbits of each stage, each with the eight ranks of
// a node under either of the two leaf groups.
TEST(Orbits, AreWhatMovesByALeafGroupAndTurnsItsRails) {
  const Scenario scenario = scenario_from(R"({"stepcast": 1, "model": "llama-3.1-8b", "cluster":
      {"base": "dgx-h100", "nodes": 16, "nodes_per_leaf_group": 4},
      "training": {"global_batch": 64}, "layout": {"tp": 8, "pp": 2}})");
  const Placed placed(scenario);
  const Orbits& orbits = placed.by_orbits.orbits;
  EXPECT_EQ(orbits.symmetries(), 2U);
  EXPECT_EQ(orbits.count(), 2 * 4);  // stages, places under a leaf group
  EXPECT_EQ(orbits.size(0), 2 * 8);  // leaf groups of a stage, rails
  EXPECT_EQ(orbits.of(RankId(0)), orbits.of(RankId(4 * 8 + 3)));
  EXPECT_NE(orbits.of(RankId(0)), orbits.of(RankId(8)));
  EXPECT_EQ(orbits.lowest(RankId(4 * 8 + 3)), RankId(0));
  const GroupTraffic* data = placed.by_orbits.find(AxisGroup::kData);
  ASSERT_NE(data, nullptr);
  ASSERT_EQ(data->orbits.size(), 2U);  // one for each stage
  EXPECT_EQ(data->orbits[0].groups, 8);
  EXPECT_EQ(data->orbits[0].members.size(), 8U);
  const PairTraffic* forward = placed.by_orbits.find(0, 1);
  ASSERT_NE(forward, nullptr);
  EXPECT_EQ(forward->orbits.size(), 4U);
  EXPECT_EQ(forward->orbits[0].pairs, 16);
}

// Groups of experts hold four neighbours. Turning the eight rails by one would tear them apart, by
// four it carries each to the next.
TEST(Orbits, KeepGroupsOfExpertsTogether) {
  const Scenario scenario = scenario_from(R"({"stepcast": 1, "model": {"layers": 2, "hidden": 512,
      "heads": 8, "vocab": 1024, "moe": {"experts": 8, "top_k": 2, "ffn": 512}}, "cluster":
      {"base": "dgx-h100", "nodes": 2}, "training": {"global_batch": 16, "sequence_length": 512},
      "layout": {"tp": 8, "ep": 4, "etp": 1}})");
  const Placed placed(scenario);
  const Orbits& orbits = placed.by_orbits.orbits;
  EXPECT_EQ(orbits.of(RankId(0)), orbits.of(RankId(4)));
  EXPECT_NE(orbits.of(RankId(0)), orbits.of(RankId(1)));
  expect_same_classes(find_symmetry(scenario, placed.grid, placed.whole, placed.costs, true),
                      find_symmetry(scenario, placed.grid, placed.by_orbits, placed.costs, true),
                      "experts");
}

TEST(Orbits, AreSingleRanksWhereACableIsMissing) {
  const Scenario scenario = scenario_from(R"({"stepcast": 1, "model": "llama-3.1-8b", "cluster":
      {"base": "dgx-h100", "nodes": 4, "fail": ["node1/nic2"]},
      "training": {"global_batch": 64}, "layout": {"tp": 8}})");
  const Placed placed(scenario);
  EXPECT_EQ(placed.units.count, 0);
  EXPECT_EQ(placed.by_orbits.orbits.count(), placed.grid.size());
}

}  // namespace
}  // namespace stepcast
