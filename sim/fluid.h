// SPDX-License-Identifier: Apache-2.0
// The tasks in their fluid phase, the capacity that holds leave them, and the rates that follow.
// Changes are collected; `solve` brings all rates up to date, once per instant, and touches only
// what a change can reach.
//
// A resource is *tight* when its users at their bounds would ask for more than there is. Only a
// tight resource couples its users, so components are grown over tight resources alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/max_min.h"
#include "sim/workload.h"

namespace stepcast::sim {

class Fluid {
 public:
  explicit Fluid(const Workload& workload);

  void join(std::int32_t task);   // begins to flow
  void leave(std::int32_t task);  // its work is done
  void hold(const Workload::Bond& bond);
  void release(const Workload::Bond& bond);

  // Returns the tasks whose rate changes now.
  std::span<const std::int32_t> solve(std::int64_t now_ps);

  double rate(std::int32_t task) const { return flow(task).rate; }
  double capacity_left(std::int32_t resource) const { return shares_[at(resource)].left; }
  // Time until the task's work is done, counted from the last change of its rate; infinite at 0.
  double remaining_ps(std::int32_t task) const;

 private:
  static std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }

  struct Flow {
    double remaining = 0;  // work, as of `since_ps`
    double rate = 0;
    std::int64_t since_ps = 0;
    std::uint64_t seen = 0;  // the last solve that reached it
    std::int32_t links = 0;  // the first of its links, one for each use
  };
  struct Share {
    double left;              // capacity without what is held
    std::int64_t limit = 0;   // `left`, as a fraction of the capacity
    std::int64_t demand = 0;  // of the users at their bounds, as a fraction of the capacity
    std::int32_t first_user = -1;
    std::int32_t first_hold = -1;
    std::int32_t local = -1;  // its number in the component being solved
    std::uint64_t seen = 0;   // the last solve that reached it
    bool is_tight = false;
    bool was_tight = false;  // before the change that is being solved
    bool is_changed = false;
    bool holds_changed = false;
  };
  struct Link {  // of the list of users, or of holds, of one resource
    std::int32_t previous = -1;
    std::int32_t next = -1;
    std::int32_t task = -1;  // that uses it
  };

  static void link(std::vector<Link>& links, std::int32_t place, std::int32_t& first);
  static void unlink(std::vector<Link>& links, std::int32_t place, std::int32_t& first);
  const Flow& flow(std::int32_t task) const { return flows_[at(flow_of_[at(task)])]; }
  Flow& flow(std::int32_t task) { return flows_[at(flow_of_[at(task)])]; }
  std::int32_t take_links(std::int32_t count);
  void mark(std::int32_t resource);
  std::int64_t demand_of(const Workload::Kind& kind, const Use& use) const;
  void update_left(std::int32_t resource);
  void update_tightness();
  void reach(std::int32_t task);
  void reach_users(std::int32_t resource);
  void grow_component();
  void solve_component(std::int64_t now_ps);
  void set_rate(std::int32_t task, double rate, std::int64_t now_ps);

  const Workload& workload_;
  // Only what flows has a flow and links, which are taken, given back and taken again by tasks of
  // as many uses. So they are few, however long the workload is.
  std::vector<std::int32_t> flow_of_;  // by task; empty when nothing uses a resource
  std::vector<Flow> flows_;
  std::vector<std::int32_t> free_flows_;
  std::vector<Link> links_;                            // of users
  std::vector<std::vector<std::int32_t>> free_links_;  // by how many are together
  std::vector<Link> hold_links_;                       // by hold
  std::vector<Share> shares_;                          // by resource
  MaxMinSolver solver_;
  std::vector<std::int32_t> joined_;     // since the last solve
  std::vector<std::int32_t> changed_;    // resources, since the last solve
  std::vector<std::int32_t> rerated_;    // tasks, by the last solve
  std::vector<std::int32_t> reached_;    // tasks of the component
  std::vector<std::int32_t> resources_;  // tight resources of the component
  std::vector<double> held_;             // by the holds of one resource
  std::uint64_t round_ = 0;
};

}  // namespace stepcast::sim
