// SPDX-License-Identifier: Apache-2.0
#include "sim/fluid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace stepcast::sim {
namespace {

// Demand is added up in integer fractions of the capacity, so that the sum is the same whatever the
// order in which users come and go. Fractions are rounded down, so n users exceed the capacity by
// at most n x 2^-40.
constexpr double kWhole = 0x1p40;
constexpr double kMostDemand = 0x1p41;  // more than the whole says nothing more

}  // namespace

Fluid::Fluid(const Workload& workload) : workload_(workload) {
  if (workload.uses().empty() && workload.holds().empty()) return;
  flow_of_.assign(workload.tasks(), -1);
  hold_links_.resize(workload.holds().size());
  shares_.reserve(workload.resources());
  for (const double capacity : workload.capacities()) {
    shares_.push_back({.left = capacity, .limit = static_cast<std::int64_t>(kWhole)});
  }
}

void Fluid::join(std::int32_t task) {
  const Workload::Kind& kind = workload_.kind_of(task);
  std::int32_t& place = flow_of_[at(task)];
  if (free_flows_.empty()) {
    place = static_cast<std::int32_t>(flows_.size());
    flows_.emplace_back();
  } else {
    place = free_flows_.back();
    free_flows_.pop_back();
  }
  const std::int32_t links = take_links(kind.use_count);
  flows_[at(place)] = {.remaining = kind.work, .links = links};
  joined_.push_back(task);
  std::int32_t own = links;
  for (const Use& use : workload_.uses_of(kind)) {
    Share& share = shares_[use.resource.index()];
    share.demand += demand_of(kind, use);
    links_[at(own)].task = task;
    link(links_, own++, share.first_user);
    mark(use.resource.value);
  }
}

void Fluid::leave(std::int32_t task) {
  const Workload::Kind& kind = workload_.kind_of(task);
  std::int32_t own = flow(task).links;
  free_links_[at(kind.use_count)].push_back(own);
  for (const Use& use : workload_.uses_of(kind)) {
    Share& share = shares_[use.resource.index()];
    share.demand -= demand_of(kind, use);
    unlink(links_, own++, share.first_user);
    mark(use.resource.value);
  }
  free_flows_.push_back(std::exchange(flow_of_[at(task)], -1));
}

// Gives the first of `count` links that lie one after the other.
std::int32_t Fluid::take_links(std::int32_t count) {
  if (at(count) >= free_links_.size()) free_links_.resize(at(count) + 1);
  std::vector<std::int32_t>& known = free_links_[at(count)];
  if (!known.empty()) {
    const std::int32_t first = known.back();
    known.pop_back();
    return first;
  }
  const auto first = static_cast<std::int32_t>(links_.size());
  links_.resize(links_.size() + at(count));
  return first;
}

void Fluid::hold(const Workload::Bond& bond) {
  for (std::int32_t h = bond.hold_begin; h < bond.hold_begin + bond.hold_count; ++h) {
    const std::int32_t resource = workload_.holds()[at(h)].resource.value;
    link(hold_links_, h, shares_[at(resource)].first_hold);
    shares_[at(resource)].holds_changed = true;
    mark(resource);
  }
}

void Fluid::release(const Workload::Bond& bond) {
  for (std::int32_t h = bond.hold_begin; h < bond.hold_begin + bond.hold_count; ++h) {
    const std::int32_t resource = workload_.holds()[at(h)].resource.value;
    unlink(hold_links_, h, shares_[at(resource)].first_hold);
    shares_[at(resource)].holds_changed = true;
    mark(resource);
  }
}

std::span<const std::int32_t> Fluid::solve(std::int64_t now_ps) {
  rerated_.clear();
  if (changed_.empty()) return rerated_;
  ++round_;
  update_tightness();
  for (const std::int32_t resource : changed_) {
    Share& share = shares_[at(resource)];
    share.is_changed = false;
    if (!share.is_tight && !share.was_tight) continue;
    reach_users(resource);
    grow_component();
    if (!reached_.empty()) solve_component(now_ps);
  }
  changed_.clear();
  for (const std::int32_t task : joined_) {  // whoever no tight resource has reached
    if (flow(task).seen == round_) continue;
    set_rate(task, workload_.kind_of(task).rate_bound, now_ps);
  }
  joined_.clear();
  return rerated_;
}

double Fluid::remaining_ps(std::int32_t task) const {
  const Flow& flow = this->flow(task);
  if (flow.rate <= 0) return std::numeric_limits<double>::infinity();
  return flow.remaining / flow.rate * 1e12;
}

void Fluid::link(std::vector<Link>& links, std::int32_t place, std::int32_t& first) {
  links[at(place)].previous = -1;
  links[at(place)].next = first;
  if (first >= 0) links[at(first)].previous = place;
  first = place;
}

void Fluid::unlink(std::vector<Link>& links, std::int32_t place, std::int32_t& first) {
  const Link entry = links[at(place)];
  if (entry.previous >= 0) {
    links[at(entry.previous)].next = entry.next;
  } else {
    first = entry.next;
  }
  if (entry.next >= 0) links[at(entry.next)].previous = entry.previous;
}

void Fluid::mark(std::int32_t resource) {
  Share& share = shares_[at(resource)];
  if (share.is_changed) return;
  share.is_changed = true;
  changed_.push_back(resource);
}

std::int64_t Fluid::demand_of(const Workload::Kind& kind, const Use& use) const {
  const double fraction =
      use.weight * kind.rate_bound / workload_.capacities()[use.resource.index()];
  // At least one unit, so that a resource that is wholly held stops even the smallest demand.
  return static_cast<std::int64_t>(std::clamp(fraction * kWhole, 1.0, kMostDemand));
}

void Fluid::update_left(std::int32_t resource) {
  Share& share = shares_[at(resource)];
  held_.clear();
  for (std::int32_t h = share.first_hold; h >= 0; h = hold_links_[at(h)].next) {
    held_.push_back(workload_.holds()[at(h)].weight);
  }
  std::sort(held_.begin(), held_.end());  // a sum that does not depend on who came first
  const double capacity = workload_.capacities()[at(resource)];
  double held = 0;
  for (const double weight : held_) held += weight;
  share.left = std::max(0.0, capacity - held);
  share.limit = share.left > 0 ? static_cast<std::int64_t>(share.left / capacity * kWhole) : 0;
  share.holds_changed = false;
}

void Fluid::update_tightness() {
  for (const std::int32_t resource : changed_) {
    Share& share = shares_[at(resource)];
    if (share.holds_changed) update_left(resource);
    share.was_tight = share.is_tight;
    share.is_tight = share.demand > share.limit;
  }
}

void Fluid::reach(std::int32_t task) {
  Flow& flow = this->flow(task);
  if (flow.seen == round_) return;
  flow.seen = round_;
  reached_.push_back(task);
}

void Fluid::reach_users(std::int32_t resource) {
  for (std::int32_t u = shares_[at(resource)].first_user; u >= 0; u = links_[at(u)].next) {
    reach(links_[at(u)].task);
  }
}

void Fluid::grow_component() {
  for (std::size_t i = 0; i < reached_.size(); ++i) {
    for (const Use& use : workload_.uses_of(reached_[i])) {
      Share& share = shares_[use.resource.index()];
      if (!share.is_tight || share.seen == round_) continue;
      share.seen = round_;
      share.local = static_cast<std::int32_t>(resources_.size());
      resources_.push_back(use.resource.value);
      reach_users(use.resource.value);
    }
  }
}

void Fluid::solve_component(std::int64_t now_ps) {
  solver_.clear();
  for (const std::int32_t resource : resources_) solver_.add_resource(shares_[at(resource)].left);
  for (const std::int32_t task : reached_) {
    const Workload::Kind& kind = workload_.kind_of(task);
    solver_.add_activity(kind.rate_bound, kind.share);
    for (const Use& use : workload_.uses_of(kind)) {
      const Share& share = shares_[use.resource.index()];
      if (share.is_tight) solver_.add_use(share.local, use.weight);
    }
  }
  solver_.solve();
  for (std::size_t i = 0; i < reached_.size(); ++i) {
    set_rate(reached_[i], solver_.rate(static_cast<std::int32_t>(i)), now_ps);
  }
  reached_.clear();
  resources_.clear();
}

// The work left is taken up only here, so a rate that stays adds no rounding.
void Fluid::set_rate(std::int32_t task, double rate, std::int64_t now_ps) {
  Flow& flow = this->flow(task);
  if (flow.rate == rate) return;
  const double elapsed_s = static_cast<double>(now_ps - flow.since_ps) * 1e-12;
  flow.remaining = std::max(0.0, flow.remaining - flow.rate * elapsed_s);
  flow.since_ps = now_ps;
  flow.rate = rate;
  rerated_.push_back(task);
}

}  // namespace stepcast::sim
