// SPDX-License-Identifier: Apache-2.0
// A rank's groups and their siblings, the other groups of the same axes and stage on the same
// nodes. Inside blocks siblings send in step, and share links: a block is replayed with all of them
// (predict/block_replay.h). Groups of another stage send at other times, as tasks of the step
// (predict/shared_links.h), but for those whose collectives are pipelined with products.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "predict/traffic.h"

namespace stepcast {

struct Scenario;

// One group takes so much of a link per unit of its rate.
struct SiblingUse {
  std::int32_t link;  // into SiblingLinks::capacities
  double weight;
  auto operator<=>(const SiblingUse&) const = default;
};
using SiblingUses = std::vector<SiblingUse>;

// Links that are full when a group and its siblings send at once; the others bind nobody. Numbered
// as they come beside the rank, so that ranks who lie alike have the same.
struct SiblingLinks {
  std::vector<double> capacities;  // bytes/s
  // By group and way: the uses of the rank's own group, then of each sibling.
  std::map<std::pair<AxisGroup, Way>, std::vector<SiblingUses>> uses;
  auto operator<=>(const SiblingLinks&) const = default;
};

// On a switch each GPU has links of its own: nothing is shared inside one NVLink domain.
bool has_own_links(const std::vector<RankId>& group, const Cluster& cluster);

// `sent`: inside blocks. `apart`: no sibling sends, and a group is held back by its own links
// alone.
SiblingLinks find_sibling_links(const Scenario& scenario, const RankGrid& grid,
                                const CollectiveCosts& costs, std::span<const GroupMessage> sent,
                                RankId rank, bool apart = false);

}  // namespace stepcast
