// SPDX-License-Identifier: Apache-2.0
// Ranks that meet inside passes, and those whose GPUs are not all alike: of several models, or some
// of them slow.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "cluster/topology.h"
#include "layout/axis_group.h"
#include "layout/rank_grid.h"

namespace stepcast {

struct Cluster;

// Ranks that meet inside passes, be it by way of others, go at one pace.
class RanksThatMeet {
 public:
  // `in_blocks`: groups whose ranks meet inside passes.
  RanksThatMeet(const RankGrid& grid, std::span<const AxisGroup> in_blocks);

  // The lowest of those that the rank meets, itself among them.
  RankId lowest(RankId rank) const { return RankId(meets_[static_cast<std::size_t>(rank.value)]); }

 private:
  std::int32_t lowest(std::int32_t rank);

  std::vector<std::int32_t> meets_;  // by rank
};

class UnevenRanks {
 public:
  // Costs nothing where all GPUs are alike.
  UnevenRanks(const Cluster& cluster, const RankGrid& grid, std::span<const AxisGroup> in_blocks);

  // The kind of the rank's GPU, and then those others, ascending, that ranks have which it meets.
  // Empty where all are alike.
  std::vector<GpuKind> kinds(RankId rank) const;

 private:
  const Topology& graph_;
  std::optional<RanksThatMeet> meet_;           // where not all are alike
  std::map<RankId, std::vector<GpuKind>> all_;  // by the lowest rank of those that meet
};

}  // namespace stepcast
