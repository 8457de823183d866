// SPDX-License-Identifier: Apache-2.0
#include "sim/workload.h"

#include <cmath>

#include "core/assert.h"
#include "sim/wait_graph.h"

namespace stepcast::sim {

ResourceId Workload::add_resource(double capacity) {
  STEPCAST_ASSERT(capacity >= 0 && std::isfinite(capacity), "a capacity is finite, never negative");
  graph_.reset();
  capacities_.push_back(capacity);
  return ResourceId(capacities_.size() - 1);
}

StreamId Workload::add_stream() {
  graph_.reset();
  stream_members_.emplace_back();
  return StreamId(stream_members_.size() - 1);
}

TaskId Workload::add_task(const TaskSpec& spec) {
  STEPCAST_ASSERT(!spec.members.empty(), "a task has at least one member");
  STEPCAST_ASSERT(spec.latency.ps >= 0 && spec.work >= 0, "latency and work are never negative");
  STEPCAST_ASSERT(spec.work == 0 || spec.rate_bound > 0, "work needs a rate");
  STEPCAST_ASSERT(spec.share > 0, "a share is positive");
  graph_.reset();
  const auto id = static_cast<std::int32_t>(tasks_.size());
  const auto member_begin = static_cast<std::int32_t>(members_.size());
  const std::int32_t use_begin = append_uses(spec.uses);
  const auto use_end = static_cast<std::int32_t>(uses_.size());
  for (const MemberSpec& member : spec.members) {
    members_.push_back({id, -1, -1, -1, 0, 0, 0, false});
    if (member.stream.valid()) fill_seat(members_.size() - 1, member);
  }
  tasks_.push_back({spec.latency.ps, spec.work, spec.rate_bound, spec.share, member_begin,
                    static_cast<std::int32_t>(spec.members.size()), use_begin,
                    use_end - use_begin});
  return TaskId(id);
}

void Workload::place(TaskId task, std::int32_t member, const MemberSpec& spec) {
  STEPCAST_ASSERT(task.valid() && task.index() < tasks_.size(), "the task exists");
  const Task& entry = tasks_[task.index()];
  STEPCAST_ASSERT(member >= 0 && member < entry.member_count, "the task has this member");
  const auto seat = static_cast<std::size_t>(entry.member_begin + member);
  STEPCAST_ASSERT(members_[seat].stream < 0, "a member is placed once");
  graph_.reset();
  fill_seat(seat, spec);
}

void Workload::depend(TaskId before, TaskId after, std::int32_t member) {
  STEPCAST_ASSERT(before.valid() && before.index() < tasks_.size(), "`before` exists");
  STEPCAST_ASSERT(after.valid() && after.index() < tasks_.size(), "`after` exists");
  const Task& task = tasks_[after.index()];
  STEPCAST_ASSERT(member >= 0 && member < task.member_count, "`after` has this member");
  graph_.reset();
  edges_.push_back({before.value, task.member_begin + member});
}

void Workload::reserve(std::size_t tasks, std::size_t members, std::size_t dependencies) {
  tasks_.reserve(tasks);
  members_.reserve(members);
  edges_.reserve(dependencies);
}

void Workload::seal() {
  if (!graph_) graph_ = std::make_shared<const Graph>(make_graph(*this));
}

std::int32_t Workload::append_uses(std::span<const Use> uses) {
  const auto begin = static_cast<std::int32_t>(uses_.size());
  for (const Use& use : uses) {
    STEPCAST_ASSERT(use.resource.valid() && use.resource.index() < capacities_.size(),
                    "the resource exists");
    STEPCAST_ASSERT(use.weight >= 0, "a weight is never negative");
    if (use.weight > 0) uses_.push_back(use);
  }
  return begin;
}

void Workload::fill_seat(std::size_t member, const MemberSpec& spec) {
  STEPCAST_ASSERT(spec.stream.valid() && spec.stream.index() < stream_members_.size(),
                  "the stream exists");
  STEPCAST_ASSERT(!spec.issuer.valid() || spec.issuer.index() < tasks_.size(), "the issuer exists");
  STEPCAST_ASSERT(spec.floor.ps == 0 || (spec.floor.ps > 0 && spec.issuer.valid()),
                  "a floor counts from an issuer");
  std::vector<std::int32_t>& stream = stream_members_[spec.stream.index()];
  Member& entry = members_[member];
  entry.stream = spec.stream.value;
  entry.issuer = spec.issuer.value;
  entry.previous = stream.empty() ? -1 : stream.back();
  entry.floor_ps = spec.floor.ps;
  entry.hold_begin = append_uses(spec.holds);
  entry.hold_count = static_cast<std::int32_t>(uses_.size()) - entry.hold_begin;
  entry.holds_from_start = spec.holds_from_start;
  stream.push_back(static_cast<std::int32_t>(member));
}

}  // namespace stepcast::sim
