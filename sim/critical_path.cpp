// SPDX-License-Identifier: Apache-2.0
#include "sim/critical_path.h"

#include <algorithm>
#include <numeric>

namespace stepcast::sim {
namespace {

class PathFinder {
 public:
  PathFinder(const Workload& workload, const Replay& replay)
      : workload_(workload), replay_(replay) {
    // Dependencies by member, in order of adding.
    begin_.assign(workload.member_table().size() + 1, 0);
    for (const Workload::Edge& edge : workload.edges()) {
      ++begin_[static_cast<std::size_t>(edge.after_member) + 1];
    }
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    before_.resize(workload.edges().size());
    std::vector<std::int32_t> next = begin_;
    for (const Workload::Edge& edge : workload.edges()) {
      before_[static_cast<std::size_t>(next[static_cast<std::size_t>(edge.after_member)]++)] =
          edge.before_task;
    }
  }

  std::vector<PathSegment> from(TaskId last) {
    std::vector<PathSegment> path;
    std::int32_t task = last.value;
    Time until = replay_.tasks[last.index()].end;
    while (task >= 0) {
      const Interval& when = replay_.tasks[static_cast<std::size_t>(task)];
      std::int32_t before = starved_by(task, until);
      const Time since = before >= 0 ? replay_.tasks[static_cast<std::size_t>(before)].start
                                     : when.start;
      if (since < until) path.push_back({TaskId(task), until - since});
      if (before < 0) before = released_by(task, since);
      task = before;
      until = since;
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  using Task = Workload::Task;
  using Member = Workload::Member;

  template <class Visit>
  void members(std::int32_t task, Visit visit) const {
    const Task& entry = workload_.task_table()[static_cast<std::size_t>(task)];
    for (std::int32_t m = 0; m < entry.member_count; ++m) visit(entry.member_begin + m);
  }
  Time end(std::int32_t task) const { return replay_.tasks[static_cast<std::size_t>(task)].end; }

  // The issuer whose floor set the end, or -1.
  std::int32_t starved_by(std::int32_t task, Time until) const {
    std::int32_t found = -1;
    if (until != end(task)) return found;
    members(task, [&](std::int32_t m) {
      const Member& member = workload_.member_table()[static_cast<std::size_t>(m)];
      if (member.issuer < 0 || member.floor_ps == 0 || found >= 0) return;
      const Interval& issuer = replay_.tasks[static_cast<std::size_t>(member.issuer)];
      const Interval& own = replay_.tasks[static_cast<std::size_t>(task)];
      const bool binds = issuer.start.ps + member.floor_ps == until.ps;
      // A kernel that started as soon as it was issued is its own time, not its host's.
      if (binds && issuer.start < own.start) found = member.issuer;
    });
    return found;
  }

  // A task whose end (or, for an issuer, start) let `task` start at `since`; -1 at the beginning.
  std::int32_t released_by(std::int32_t task, Time since) const {
    std::int32_t found = -1;
    const auto consider = [&](std::int32_t candidate, Time at) {
      if (found < 0 && candidate >= 0 && at == since && since > Time{}) found = candidate;
    };
    members(task, [&](std::int32_t m) {
      const auto index = static_cast<std::size_t>(m);
      for (std::int32_t e = begin_[index]; e < begin_[index + 1]; ++e) {
        consider(before_[static_cast<std::size_t>(e)], end(before_[static_cast<std::size_t>(e)]));
      }
    });
    members(task, [&](std::int32_t m) {
      const Member& member = workload_.member_table()[static_cast<std::size_t>(m)];
      if (member.previous >= 0) {
        const std::int32_t before =
            workload_.member_table()[static_cast<std::size_t>(member.previous)].task;
        consider(before, end(before));
      }
      if (member.issuer >= 0) {
        consider(member.issuer,
                 replay_.tasks[static_cast<std::size_t>(member.issuer)].start);
      }
    });
    return found;
  }

  const Workload& workload_;
  const Replay& replay_;
  std::vector<std::int32_t> begin_, before_;
};

}  // namespace

std::vector<PathSegment> critical_path(const Workload& workload, const Replay& replay,
                                       TaskId last) {
  return PathFinder(workload, replay).from(last);
}

}  // namespace stepcast::sim
