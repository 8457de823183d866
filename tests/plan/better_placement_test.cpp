// SPDX-License-Identifier: Apache-2.0
#include "plan/better_placement.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "plan/planning.h"
#include "plan/search.h"
#include "plan/search_result.h"

namespace stepcast {
namespace {

std::string on_eight_nodes(const std::string& place, int under_leaf) {
  return fmt::format(R"({{"stepcast": 1, "model": "gpt2", "cluster": {{"base": "dgx-a100-80g",
      "nodes": 8, "gpus_per_node": 1, "nics_per_node": 1, "nodes_per_leaf_group": {},
      "oversubscription": 16{}}}, "training": {{"global_batch": 16, "sequence_length": 512}},
      "layout": {{"dp": 8, "tp": 1, "pp": 1, "zero": 0}}}})",
                     under_leaf, place);
}

struct Found {
  std::unique_ptr<Planner> planner;
  FoundLayout first;
};

Found search_on(const std::string& place, int under_leaf = 4) {
  Found out{planner_of(on_eight_nodes(place, under_leaf)), {}};
  const auto result = out.planner->search({});
  EXPECT_TRUE(result.has_value());
  if (result && !result->found.empty()) out.first = result->found.front();
  return out;
}

// A ring over nodes that alternate between two leaves crosses their thin trunks at each hop, and in
// order once each way. So the order of the switches is shorter, and as fast as where it is stated.
TEST(BetterPlacement, PutsNodesInTheOrderOfTheirSwitches) {
  const Found apart = search_on(R"(, "place": "node[0,4,1,5,2,6,3,7]")");
  const Found in_order = search_on("");
  const Seconds stated = apart.first.prediction.step_time;
  const auto better =
      better_placement(*apart.planner, apart.first.choice, stated, source_folders());
  ASSERT_TRUE(better.has_value());
  ASSERT_TRUE(better->has_value());
  EXPECT_EQ((*better)->place, "node[0-7]");
  EXPECT_LT((*better)->step_time, stated);
  EXPECT_NEAR((*better)->step_time / in_order.first.prediction.step_time, 1, 1e-9);
}

TEST(BetterPlacement, IsNoneWhereNodesStandInOrderOrOnOneLeaf) {
  for (const auto& [place, under_leaf] :
       {std::pair("", 4), std::pair(R"(, "place": "node[0-7]")", 4),
        std::pair(R"(, "place": "node[8-15]")", 4),
        std::pair(R"(, "place": "node[4-7,0-3]")", 8)}) {
    const Found found = search_on(place, under_leaf);
    const auto better = better_placement(*found.planner, found.first.choice,
                                         found.first.prediction.step_time, source_folders());
    ASSERT_TRUE(better.has_value()) << place;
    EXPECT_FALSE(better->has_value()) << place;
  }
}

}  // namespace
}  // namespace stepcast
