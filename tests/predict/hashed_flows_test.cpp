// SPDX-License-Identifier: Apache-2.0
// A step on a cluster whose flows are hashed (docs/formats/cluster.md, "Fabrics").
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "predict/prediction.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::scenario_from;
using testing::source_folders;

// Eight nodes of one GPU, alternately under one leaf and the other, so that each hop of a ring
// crosses the spines: four flows up from either leaf, whose uplinks together carry four NICs.
Scenario ring_of_eight(const std::string& keys) {
  return scenario_from(R"({"stepcast": 1, "model": "gpt2-xl", "cluster": {"base": "dgx-a100-80g",
      "nodes": 8, "gpus_per_node": 1, "nics_per_node": 1, "nodes_per_leaf_group": 4,
      "place": "node[0,4,1,5,2,6,3,7]")" +
                       keys + R"(}, "training": {"global_batch": 8, "sequence_length": 512,
      "framework": "megatron"}, "layout": {"dp": 8, "zero": 0}})");
}

Seconds step(const Scenario& scenario) {
  const auto out = predict(scenario, source_folders());
  EXPECT_TRUE(out.has_value());
  return out ? out->step_time : Seconds();
}

Scenario hashed(int uplinks, int seed, int flows = 1) {
  return ring_of_eight(
      fmt::format(R"(, "ecmp": "hashed", "uplinks": {}, "ecmp_seed": {}, "ecmp_flows": {})",
                  uplinks, seed, flows));
}

// The most hops of the ring on one cable between switches.
double fullest(const Topology& graph) {
  std::map<LinkId, double> hops;
  for (std::size_t i = 0; i < 8; ++i) {
    for (const LinkShare& share : graph.route(DeviceId(i), DeviceId((i + 1) % 8))) {
      const Link& link = graph.links()[share.link.index()];
      if (link.kind == LinkKind::kFabric) hops[share.link] += share.fraction;
    }
  }
  double most = 0;
  for (const auto& [link, count] : hops) most = std::max(most, count);
  return most;
}

// An uplink carries what a NIC does, so a ring with l hops on its fullest one moves at 1/l of the
// rate. So it does over a trunk that all of them share and that carries 1/l of their NICs: the step
// is that of even shares and an oversubscription of l.
TEST(HashedSteps, AreThoseOfAsThinATrunk) {
  std::set<double> seen;
  for (int seed = 0; seed < 16; ++seed) {
    const Scenario scenario = hashed(4, seed);
    const double most = fullest(scenario.cluster.topology);
    const Seconds thin = step(ring_of_eight(fmt::format(R"(, "oversubscription": {})", most)));
    EXPECT_NEAR(step(scenario) / thin, 1, 1e-9) << seed << " with " << most << " on one cable";
    seen.insert(most);
  }
  EXPECT_GE(seen.size(), 2u);
}

TEST(HashedSteps, AreEvenOnOneUplinkAndNearlySoWithManyFlows) {
  const Seconds even = step(ring_of_eight(""));
  EXPECT_EQ(step(hashed(1, 0)), even);
  const Scenario many = hashed(4, 0, 1024);
  const double most = fullest(many.cluster.topology);
  EXPECT_NEAR(most, 1, 0.1);
  EXPECT_GE(step(many), (1 - 1e-9) * even);
  EXPECT_LE(step(many) / even, most * (1 + 1e-9));
}

}  // namespace
}  // namespace stepcast
