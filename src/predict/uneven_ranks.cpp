// SPDX-License-Identifier: Apache-2.0
#include "predict/uneven_ranks.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>

#include "cluster/cluster.h"

namespace stepcast {

RanksThatMeet::RanksThatMeet(const RankGrid& grid, std::span<const AxisGroup> in_blocks)
    : meets_(static_cast<std::size_t>(grid.size())) {
  std::iota(meets_.begin(), meets_.end(), 0);
  for (const AxisGroup group : in_blocks) {
    if (grid.group_size(group) < 2) continue;
    for (std::int32_t rank = 0; rank < grid.size(); ++rank) {
      const std::vector<RankId> members = grid.members(group, RankId(rank));
      if (members.empty() || members.front().value != rank) continue;
      for (const RankId member : members) {
        const auto [low, high] = std::minmax({lowest(rank), lowest(member.value)});
        meets_[static_cast<std::size_t>(high)] = low;
      }
    }
  }
  for (std::int32_t rank = 0; rank < grid.size(); ++rank) {
    meets_[static_cast<std::size_t>(rank)] = lowest(rank);
  }
}

std::int32_t RanksThatMeet::lowest(std::int32_t rank) {
  while (meets_[static_cast<std::size_t>(rank)] != rank) {
    std::int32_t& next = meets_[static_cast<std::size_t>(rank)];
    next = meets_[static_cast<std::size_t>(next)];
    rank = next;
  }
  return rank;
}

UnevenRanks::UnevenRanks(const Cluster& cluster, const RankGrid& grid,
                         std::span<const AxisGroup> in_blocks)
    : graph_(cluster.topology) {
  if (!graph_.is_uneven()) return;
  meet_.emplace(grid, in_blocks);
  for (std::int32_t rank = 0; rank < grid.size(); ++rank) {
    std::vector<GpuKind>& all = all_[meet_->lowest(RankId(rank))];
    const GpuKind own = graph_.kind(DeviceId(rank));
    const auto place = std::ranges::lower_bound(all, own);
    if (place == all.end() || *place != own) all.insert(place, own);
  }
}

std::vector<GpuKind> UnevenRanks::kinds(RankId rank) const {
  if (!meet_) return {};
  const GpuKind own = graph_.kind(DeviceId(rank.value));
  std::vector<GpuKind> out = {own};
  std::ranges::copy_if(all_.at(meet_->lowest(rank)), std::back_inserter(out),
                       [&](const GpuKind& kind) { return kind != own; });
  return out;
}

}  // namespace stepcast
