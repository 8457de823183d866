// SPDX-License-Identifier: Apache-2.0
#include "sim/max_min.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "core/assert.h"

namespace stepcast::sim {
namespace {

std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }

}  // namespace

void MaxMinSolver::clear() {
  resources_.clear();
  claims_.clear();
  uses_.clear();
}

std::int32_t MaxMinSolver::add_resource(double capacity) {
  resources_.push_back({.capacity = capacity});
  return static_cast<std::int32_t>(resources_.size()) - 1;
}

std::int32_t MaxMinSolver::add_activity(double bound, double share) {
  claims_.push_back(
      {.bound = bound, .share = share, .begin = static_cast<std::int32_t>(uses_.size())});
  return static_cast<std::int32_t>(claims_.size()) - 1;
}

void MaxMinSolver::add_use(std::int32_t resource, double weight) {
  STEPCAST_DASSERT(!claims_.empty() && at(resource) < resources_.size(), "both ends exist");
  if (weight <= 0) return;
  uses_.push_back({resource, weight});
  ++resources_[at(resource)].users;
}

double MaxMinSolver::rate(std::int32_t activity) const { return claims_[at(activity)].rate; }

// All claims rise together at rate = share x level. A claim stops at its bound or when a resource
// it uses is full, whichever level comes first; what it takes from then on is subtracted.
void MaxMinSolver::solve() {
  group_by_resource();
  order_by_bound();
  fullest_.clear();
  round_ = 0;
  settled_ = 0;
  for (std::size_t r = 0; r < resources_.size(); ++r) refresh(static_cast<std::int32_t>(r), 0);

  double level = 0;
  std::size_t next = 0;  // in order_
  while (settled_ < claims_.size()) {
    while (next < order_.size() && claims_[at(order_[next])].round >= 0) ++next;
    drop_stale();
    const Claim& first = claims_[at(order_[next])];
    double lowest = first.bound / first.share;
    if (!fullest_.empty()) lowest = std::min(lowest, fullest_.front().level);
    level = std::max(level, lowest);
    for (; next < order_.size(); ++next) {
      const Claim& claim = claims_[at(order_[next])];
      if (claim.bound / claim.share > level) break;
      if (claim.round < 0) settle(order_[next], claim.bound, round_);
    }
    for (; !fullest_.empty() && fullest_.front().level <= level; drop_stale()) {
      Resource& resource = resources_[at(fullest_.front().resource)];
      ++resource.version;  // the entry has had its turn
      for (const Term& term : terms_of(resource)) {
        const Claim& claim = claims_[at(term.claim)];
        if (claim.round >= 0) continue;
        settle(term.claim, std::min(claim.bound, claim.share * level), round_);
      }
    }
    for (const std::int32_t resource : touched_) refresh(resource, level);
    touched_.clear();
    ++round_;
  }
}

// Equal terms are interchangeable, so the order within a resource is a function of values alone.
void MaxMinSolver::group_by_resource() {
  std::int32_t end = 0;
  for (Resource& resource : resources_) {
    resource.begin = end;
    end += resource.users;
    resource.users = 0;
  }
  terms_.resize(at(end));
  for (std::size_t c = 0; c < claims_.size(); ++c) {
    for (const ClaimUse& use : uses_of(static_cast<std::int32_t>(c))) {
      Resource& resource = resources_[at(use.resource)];
      terms_[at(resource.begin + resource.users++)] = {use.weight, static_cast<std::int32_t>(c)};
    }
  }
  const auto before = [this](const Term& a, const Term& b) {
    const Claim& x = claims_[at(a.claim)];
    const Claim& y = claims_[at(b.claim)];
    return std::tie(a.weight, x.share, x.bound) < std::tie(b.weight, y.share, y.bound);
  };
  for (const Resource& resource : resources_) {
    const auto begin = terms_.begin() + resource.begin;
    if (resource.users > 1) std::sort(begin, begin + resource.users, before);
  }
}

void MaxMinSolver::order_by_bound() {
  order_.resize(claims_.size());
  for (std::size_t c = 0; c < order_.size(); ++c) order_[c] = static_cast<std::int32_t>(c);
  std::sort(order_.begin(), order_.end(), [this](std::int32_t a, std::int32_t b) {
    const Claim& x = claims_[at(a)];
    const Claim& y = claims_[at(b)];
    return x.bound / x.share < y.bound / y.share;
  });
}

// Counts what was settled in this round as used and files the resource under its new level.
void MaxMinSolver::refresh(std::int32_t resource, double level) {
  Resource& entry = resources_[at(resource)];
  double newly_used = 0;
  double rising = 0;
  for (const Term& term : terms_of(entry)) {
    const Claim& claim = claims_[at(term.claim)];
    if (claim.round < 0) rising += term.weight * claim.share;
    if (claim.round == round_) newly_used += term.weight * claim.rate;
  }
  entry.used += newly_used;
  ++entry.version;
  if (rising <= 0) return;
  // The level only rises. Rounding may take a little from an almost full resource, and must not
  // lower the level again.
  const double full = std::max(level, (entry.capacity - entry.used) / rising);
  fullest_.push_back({full, resource, entry.version});
  std::push_heap(fullest_.begin(), fullest_.end(),
                 [](const Fill& a, const Fill& b) { return a.level > b.level; });
}

void MaxMinSolver::settle(std::int32_t claim, double rate, std::int32_t round) {
  Claim& entry = claims_[at(claim)];
  entry.rate = rate;
  entry.round = round;
  ++settled_;
  for (const ClaimUse& use : uses_of(claim)) {
    Resource& resource = resources_[at(use.resource)];
    if (resource.round == round) continue;
    resource.round = round;
    touched_.push_back(use.resource);
  }
}

void MaxMinSolver::drop_stale() {
  while (!fullest_.empty()) {
    const Fill& top = fullest_.front();
    if (resources_[at(top.resource)].version == top.version) return;
    std::pop_heap(fullest_.begin(), fullest_.end(),
                  [](const Fill& a, const Fill& b) { return a.level > b.level; });
    fullest_.pop_back();
  }
}

std::span<const MaxMinSolver::ClaimUse> MaxMinSolver::uses_of(std::int32_t claim) const {
  const std::size_t begin = at(claims_[at(claim)].begin);
  const std::size_t next = at(claim) + 1;
  const std::size_t end = next < claims_.size() ? at(claims_[next].begin) : uses_.size();
  return {uses_.data() + begin, end - begin};
}

std::span<const MaxMinSolver::Term> MaxMinSolver::terms_of(const Resource& resource) const {
  return {terms_.data() + resource.begin, at(resource.users)};
}

}  // namespace stepcast::sim
