// SPDX-License-Identifier: Apache-2.0
#include "sim/workload.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "core/assert.h"
#include "sim/wait_graph.h"

namespace stepcast::sim {
namespace {

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  return (std::rotl(hash, 23) ^ value) * 0x9e3779b97f4a7c15ULL;
}
std::uint64_t mixed(std::uint64_t hash, double value) {
  return mixed(hash, std::bit_cast<std::uint64_t>(value));
}
// The place of a hash in a table of so many: its upper bits, which all others have reached.
std::size_t place(std::uint64_t hash, std::size_t size) {
  return static_cast<std::size_t>(hash >> 32) % size;
}

}  // namespace

ResourceId Workload::add_resource(double capacity) {
  STEPCAST_ASSERT(capacity >= 0 && std::isfinite(capacity), "a capacity is finite, never negative");
  graph_.reset();
  capacities_.push_back(capacity);
  return ResourceId(capacities_.size() - 1);
}

StreamId Workload::add_stream() {
  graph_.reset();
  last_on_stream_.push_back(-1);
  return StreamId(last_on_stream_.size() - 1);
}

TaskId Workload::add_task(const TaskSpec& spec) {
  STEPCAST_ASSERT(!spec.members.empty(), "a task has at least one member");
  STEPCAST_ASSERT(spec.latency.ps >= 0 && spec.work >= 0, "latency and work are never negative");
  STEPCAST_ASSERT(spec.work == 0 || spec.rate_bound > 0, "work needs a rate");
  STEPCAST_ASSERT(spec.share > 0, "a share is positive");
  graph_.reset();
  const auto id = static_cast<std::int32_t>(tasks_.size());
  tasks_.push_back({kind_of(spec), static_cast<std::int32_t>(members_.size())});
  for (const MemberSpec& member : spec.members) {
    members_.push_back({id, -1, -2, -1});
    if (member.stream.valid()) fill_seat(members_.size() - 1, member);
  }
  return TaskId(id);
}

std::size_t Workload::seat(TaskId task, std::int32_t member) const {
  const auto out = static_cast<std::size_t>(tasks_[task.index()].member_begin + member);
  STEPCAST_ASSERT(member >= 0 && out < end_of_members(task.index()), "the task has this member");
  return out;
}

void Workload::place(TaskId task, std::int32_t member, const MemberSpec& spec) {
  STEPCAST_ASSERT(task.valid() && task.index() < tasks_.size(), "the task exists");
  const std::size_t at = seat(task, member);
  STEPCAST_ASSERT(!members_[at].is_placed(), "a member is placed once");
  graph_.reset();
  fill_seat(at, spec);
}

void Workload::depend(TaskId before, TaskId after, std::int32_t member) {
  STEPCAST_ASSERT(before.valid() && before.index() < tasks_.size(), "`before` exists");
  STEPCAST_ASSERT(after.valid() && after.index() < tasks_.size(), "`after` exists");
  graph_.reset();
  edges_.push_back({before.value, static_cast<std::int32_t>(seat(after, member))});
}

void Workload::reserve(std::size_t tasks, std::size_t members, std::size_t dependencies) {
  tasks_.reserve(tasks);
  members_.reserve(members);
  edges_.reserve(dependencies);
}

void Workload::seal() {
  if (!graph_) graph_ = std::make_shared<const Graph>(make_graph(*this));
}

std::int32_t Workload::append(std::span<const Use> uses, std::vector<Use>& to) const {
  const auto begin = static_cast<std::int32_t>(to.size());
  for (const Use& use : uses) {
    STEPCAST_ASSERT(use.resource.valid() && use.resource.index() < capacities_.size(),
                    "the resource exists");
    STEPCAST_ASSERT(use.weight >= 0, "a weight is never negative");
    if (use.weight > 0) to.push_back(use);
  }
  return begin;
}

// Finds the kind of a task, or makes a new one. A kind that has not been met of late may come
// twice.
std::int32_t Workload::kind_of(const TaskSpec& spec) {
  std::uint64_t hash = mixed(spec.uses.size(), static_cast<std::uint64_t>(spec.latency.ps));
  hash = mixed(mixed(mixed(hash, spec.work), spec.rate_bound), spec.share);
  if (!spec.uses.empty()) {
    hash = mixed(hash, static_cast<std::uint64_t>(spec.uses.front().resource.value));
  }
  std::int32_t& recent = recent_kinds_[sim::place(hash, recent_kinds_.size())];
  if (recent > 0 && is_kind(spec, recent - 1)) return recent - 1;
  const std::int32_t begin = append(spec.uses, uses_);
  kinds_.push_back({spec.latency.ps, spec.work, spec.rate_bound, spec.share, begin,
                    static_cast<std::int32_t>(uses_.size()) - begin});
  recent = static_cast<std::int32_t>(kinds_.size());
  return recent - 1;
}

bool Workload::is_kind(const TaskSpec& spec, std::int32_t kind) const {
  const Kind& known = kinds_[static_cast<std::size_t>(kind)];
  return known.latency_ps == spec.latency.ps && known.work == spec.work &&
         known.rate_bound == spec.rate_bound && known.share == spec.share &&
         std::ranges::equal(uses_of(known), spec.uses, [](const Use& a, const Use& b) {
           return a.resource == b.resource && a.weight == b.weight;
         });
}

std::int32_t Workload::bond_of(const MemberSpec& spec) {
  if (spec.floor.ps == 0 && spec.holds.empty()) return -1;
  const bool only_floor = spec.holds.empty();
  const auto hash = mixed(0, static_cast<std::uint64_t>(spec.floor.ps));
  std::int32_t& recent = recent_bonds_[sim::place(hash, recent_bonds_.size())];
  if (only_floor && recent > 0) {
    const Bond& known = bonds_[static_cast<std::size_t>(recent - 1)];
    if (known.floor_ps == spec.floor.ps && known.hold_count == 0) return recent - 1;
  }
  const std::int32_t begin = append(spec.holds, holds_);
  bonds_.push_back({spec.floor.ps, begin, static_cast<std::int32_t>(holds_.size()) - begin,
                    spec.holds_from_start});
  const auto made = static_cast<std::int32_t>(bonds_.size());
  if (only_floor) recent = made;
  return made - 1;
}

void Workload::fill_seat(std::size_t member, const MemberSpec& spec) {
  STEPCAST_ASSERT(spec.stream.valid() && spec.stream.index() < last_on_stream_.size(),
                  "the stream exists");
  STEPCAST_ASSERT(!spec.issuer.valid() || spec.issuer.index() < tasks_.size(), "the issuer exists");
  STEPCAST_ASSERT(spec.floor.ps == 0 || (spec.floor.ps > 0 && spec.issuer.valid()),
                  "a floor counts from an issuer");
  Member& entry = members_[member];
  entry.issuer = spec.issuer.value;
  entry.bond = bond_of(spec);
  std::int32_t& last = last_on_stream_[spec.stream.index()];
  entry.previous = std::exchange(last, static_cast<std::int32_t>(member));
}

}  // namespace stepcast::sim
