// SPDX-License-Identifier: Apache-2.0
#include "predict/sibling_links.h"

#include <algorithm>
#include <set>

#include "layout/scenario.h"

namespace stepcast {
namespace {

// Who sends at once over which links: the rank's own group first.
using Loads = std::vector<std::vector<LinkLoad>>;

// A collective that is pipelined with its product is no task of the step, so it meets other stages
// nowhere else. While the pipeline is full they send all the time.
bool meets_other_stages(AxisGroup group, const Layout& layout) {
  return group == AxisGroup::kTensor && layout.overlap.tp;
}

// The groups of the same stage with a member on a node of `own`, one of each, without `own`; of all
// stages where they meet.
std::vector<std::vector<DeviceId>> siblings_of(const std::vector<RankId>& own, AxisGroup group,
                                               const Scenario& scenario, const RankGrid& grid) {
  std::set<std::int64_t> nodes;
  for (const RankId r : own) nodes.insert(scenario.cluster.node_of(DeviceId(r.value)));
  const std::int32_t stage = grid.point(own.front()).pp;
  const bool all_stages = meets_other_stages(group, scenario.layout);
  std::set<std::int32_t> seen{grid.group_of(group, own.front())};
  std::vector<std::vector<DeviceId>> out;
  for (std::int32_t r = 0; r < grid.size(); ++r) {
    if (!all_stages && grid.point(RankId(r)).pp != stage) continue;
    if (!nodes.contains(scenario.cluster.node_of(DeviceId(r)))) continue;
    if (!seen.insert(grid.group_of(group, RankId(r))).second) continue;
    out.push_back(devices_of(grid.members(group, RankId(r))));
  }
  return out;
}

// Gives the links of several ways their numbers, as they come.
class LinkNumbers {
 public:
  explicit LinkNumbers(const Topology& topology) : links_(topology.links()) {}

  // The uses of those links that are full when all send at `rate`; none where the first group has
  // no such link.
  std::vector<SiblingUses> number(const Loads& loads, BytesPerSecond rate) {
    std::map<LinkId, double> asked;  // of the capacity
    for (const std::vector<LinkLoad>& of_group : loads) {
      for (const LinkLoad& load : of_group) {
        asked[load.link] += load.weight * rate.value() / capacity(load.link);
      }
    }
    const auto is_full = [&](const LinkLoad& load) { return asked.at(load.link) > 1 + 1e-9; };
    std::vector<SiblingUses> out;
    if (std::ranges::none_of(loads.front(), is_full)) return out;
    for (const std::vector<LinkLoad>& of_group : loads) {
      SiblingUses uses;
      for (const LinkLoad& load : of_group) {
        if (is_full(load)) uses.push_back({number_of(load.link), load.weight});
      }
      if (!uses.empty()) out.push_back(std::move(uses));
    }
    return out;
  }
  std::vector<double> take_capacities() { return std::move(capacities_); }

 private:
  double capacity(LinkId link) const { return links_[link.index()].capacity.value(); }

  std::int32_t number_of(LinkId link) {
    const auto next = static_cast<std::int32_t>(capacities_.size());
    const auto [known, fresh] = numbers_.try_emplace(link, next);
    if (fresh) capacities_.push_back(capacity(link));
    return known->second;
  }

  const std::vector<Link>& links_;
  std::map<LinkId, std::int32_t> numbers_;
  std::vector<double> capacities_;
};

}  // namespace

bool has_own_links(const std::vector<RankId>& group, const Cluster& cluster) {
  const auto domain = [&](RankId r) { return cluster.domain_of(DeviceId(r.value)); };
  return cluster.spec.scale_up != ScaleUp::kPcie &&
         std::ranges::all_of(group, [&](RankId r) { return domain(r) == domain(group.front()); });
}

SiblingLinks find_sibling_links(const Scenario& scenario, const RankGrid& grid,
                                const CollectiveCosts& costs, std::span<const GroupMessage> sent,
                                RankId rank, bool apart) {
  std::map<std::pair<AxisGroup, Way>, CollectivePrice> fastest;
  std::map<AxisGroup, std::vector<std::vector<DeviceId>>> groups;  // its own first
  for (const auto& [group, message] : sent) {
    const auto [known, fresh] = groups.try_emplace(group);
    if (fresh && grid.group_size(group) > 1) {
      const std::vector<RankId> own = grid.members(group, rank);
      if (!has_own_links(own, scenario.cluster)) {
        if (!apart) known->second = siblings_of(own, group, scenario, grid);
        known->second.insert(known->second.begin(), devices_of(own));
      }
    }
    if (known->second.empty()) continue;
    const CollectivePrice price = costs.price(message, known->second.front());
    keep_faster(fastest, std::pair(group, way_of(message, price)), price);
  }
  SiblingLinks out;
  LinkNumbers numbers(scenario.cluster.topology);
  for (const auto& [key, price] : fastest) {
    Loads loads;
    for (const std::vector<DeviceId>& group : groups.at(key.first)) {
      loads.push_back(costs.loads(price, key.second.kind, group));
    }
    std::vector<SiblingUses> uses = numbers.number(loads, price.rate_bound);
    if (!uses.empty()) out.uses[key] = std::move(uses);
  }
  out.capacities = numbers.take_capacities();
  return out;
}

}  // namespace stepcast
