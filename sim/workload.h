// SPDX-License-Identifier: Apache-2.0
// The engine replays this: tasks on FIFO streams, with dependencies and fluid resources. A workload
// is static: it is built once and run many times. It knows no transformer.
//
// A task has one *member* per stream that takes part (one for a kernel, one per rank for a
// collective, two for a send/receive pair). A member is *posted* when it heads its stream, its
// dependencies have ended and its issuer has started. The task *starts* when all members are
// posted, spends `latency` loading nothing, then does `work` at a fluid rate, and ends no earlier
// than each issuer's start plus the member's `floor`. All its streams advance together at its end.
// From its own posting to the task's end a member *holds* resources (the SMs of a waiting NCCL
// kernel), or from the task's start, when it says so.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/id.h"
#include "sim/time.h"

namespace stepcast::sim {

using StreamId = Id<struct StreamTag>;
using ResourceId = Id<struct ResourceTag>;
using TaskId = Id<struct TaskTag>;

// Loads a resource per unit of rate: work 1/s at weight w takes w of the resource's capacity.
struct Use {
  ResourceId resource;
  double weight;
};

struct MemberSpec {
  StreamId stream;
  TaskId issuer;                    // invalid: none
  Duration floor;                   // after the issuer's start; needs an issuer
  std::span<const Use> holds = {};  // weight = amount of capacity taken away while held
  bool holds_from_start = false;    // of the task, not from the member's own posting
};

struct TaskSpec {
  std::span<const MemberSpec> members;
  Duration latency;
  double work = 0;        // in any unit; 0: ends after the latency
  double rate_bound = 0;  // units of work per second with all resources free; > 0 when work > 0
  double share = 1;       // weight in max-min fairness (channels of a collective)
  std::span<const Use> uses = {};  // empty: always runs at rate_bound
};

struct Graph;

class Workload {
 public:
  ResourceId add_resource(double capacity);
  StreamId add_stream();
  // Takes the next place on each member's stream. A member without a stream is a seat that `place`
  // fills later, so that the ranks of a collective can be written one rank after the other.
  TaskId add_task(const TaskSpec& spec);
  void place(TaskId task, std::int32_t member, const MemberSpec& spec);
  // `after`'s member number `member` is not posted before `before` has ended.
  void depend(TaskId before, TaskId after, std::int32_t member = 0);

  // Room for a workload whose size is known beforehand.
  void reserve(std::size_t tasks, std::size_t members, std::size_t dependencies);
  // Prepares the tables that every replay needs, once for many replays; adding anything undoes it.
  void seal();

  std::size_t tasks() const { return tasks_.size(); }
  std::size_t streams() const { return last_on_stream_.size(); }
  std::size_t resources() const { return capacities_.size(); }

  // Implementation: flat arrays that the engine walks (sim/engine.cpp). Many tasks do the same, so
  // what they do is kept once.
  struct Kind {
    std::int64_t latency_ps;
    double work;
    double rate_bound;
    double share;
    std::int32_t use_begin, use_count;
  };
  struct Task {
    std::int32_t kind;
    std::int32_t member_begin;
  };
  struct Member {
    std::int32_t task;
    std::int32_t issuer;
    std::int32_t previous;  // the member before it on its stream; -1: it is the first; -2: no place
    std::int32_t bond;      // into bonds; -1: neither floor nor holds
    bool is_placed() const { return previous >= -1; }
  };
  // The floor of a member, and what it holds.
  struct Bond {
    std::int64_t floor_ps;
    std::int32_t hold_begin, hold_count;
    bool holds_from_start;
    bool holds_from_posting() const { return hold_count > 0 && !holds_from_start; }
  };
  struct Edge {
    std::int32_t before_task;
    std::int32_t after_member;
  };
  const std::vector<Task>& task_table() const { return tasks_; }
  const std::vector<Member>& member_table() const { return members_; }
  const std::vector<Edge>& edges() const { return edges_; }
  const std::vector<Use>& uses() const { return uses_; }    // of kinds
  const std::vector<Use>& holds() const { return holds_; }  // of bonds, each of one member
  const Kind& kind_of(std::int32_t task) const {
    return kinds_[static_cast<std::size_t>(tasks_[static_cast<std::size_t>(task)].kind)];
  }
  std::span<const Use> uses_of(std::int32_t task) const { return uses_of(kind_of(task)); }
  std::span<const Use> uses_of(const Kind& kind) const {
    return {uses_.data() + kind.use_begin, static_cast<std::size_t>(kind.use_count)};
  }
  std::span<const Member> members_of(std::int32_t task) const {
    const auto at = static_cast<std::size_t>(task);
    const auto begin = static_cast<std::size_t>(tasks_[at].member_begin);
    return {members_.data() + begin, end_of_members(at) - begin};
  }
  const Bond* bond_of(const Member& member) const {  // null: none
    return member.bond < 0 ? nullptr : &bonds_[static_cast<std::size_t>(member.bond)];
  }
  const std::vector<double>& capacities() const { return capacities_; }
  const std::shared_ptr<const Graph>& graph() const { return graph_; }  // null unless sealed

 private:
  std::size_t end_of_members(std::size_t task) const {
    return task + 1 < tasks_.size() ? static_cast<std::size_t>(tasks_[task + 1].member_begin)
                                    : members_.size();
  }
  std::size_t seat(TaskId task, std::int32_t member) const;
  std::int32_t append(std::span<const Use> uses, std::vector<Use>& to) const;
  std::int32_t kind_of(const TaskSpec& spec);
  bool is_kind(const TaskSpec& spec, std::int32_t kind) const;
  std::int32_t bond_of(const MemberSpec& spec);
  void fill_seat(std::size_t member, const MemberSpec& spec);

  std::vector<Kind> kinds_;
  std::vector<Task> tasks_;
  std::vector<Member> members_;
  std::vector<Bond> bonds_;
  std::vector<Edge> edges_;
  std::vector<Use> uses_, holds_;
  std::vector<double> capacities_;
  std::vector<std::int32_t> last_on_stream_;  // members
  std::shared_ptr<const Graph> graph_;
  // Kinds and bonds that were met of late, by a hash of what they are, plus one.
  std::array<std::int32_t, 256> recent_kinds_{};
  std::array<std::int32_t, 64> recent_bonds_{};
};

}  // namespace stepcast::sim
