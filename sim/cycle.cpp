// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>

#include "sim/engine.h"
#include "sim/wait_graph.h"

namespace stepcast::sim {
namespace {

std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }

// Calls visit(before, after) for every "after waits for before" between tasks.
template <class Visit>
void for_each_wait(const Workload& workload, Visit visit) {
  const auto& members = workload.member_table();
  for (const Workload::Member& member : members) {
    if (member.previous >= 0) visit(members[at(member.previous)].task, member.task);
    if (member.issuer >= 0) visit(member.issuer, member.task);
  }
  for (const Workload::Edge& edge : workload.edges()) {
    visit(edge.before_task, members[at(edge.after_member)].task);
  }
}

// How many waits each task still has once every task that can end has ended (Kahn).
std::vector<std::int32_t> waits_left(const Workload& workload) {
  std::vector<std::int32_t> waits(workload.tasks(), 0);
  std::vector<std::int32_t> begin(workload.tasks() + 2, 0);
  for_each_wait(workload, [&](std::int32_t before, std::int32_t after) {
    ++waits[at(after)];
    ++begin[at(before) + 2];
  });
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  std::vector<std::int32_t> successors(at(begin.back()));
  for_each_wait(workload, [&](std::int32_t before, std::int32_t after) {
    successors[at(begin[at(before) + 1]++)] = after;
  });

  std::vector<std::int32_t> free_tasks;
  for (std::size_t t = 0; t < waits.size(); ++t) {
    if (waits[t] == 0) free_tasks.push_back(static_cast<std::int32_t>(t));
  }
  for (std::size_t i = 0; i < free_tasks.size(); ++i) {
    const std::int32_t task = free_tasks[i];
    for (std::int32_t e = begin[at(task)]; e < begin[at(task) + 1]; ++e) {
      if (--waits[at(successors[at(e)])] == 0) free_tasks.push_back(successors[at(e)]);
    }
  }
  return waits;
}

}  // namespace

std::vector<TaskId> find_cycle(const Workload& workload) {
  const std::vector<std::int32_t> waits = waits_left(workload);
  const auto stuck = std::find_if(waits.begin(), waits.end(), [](int w) { return w > 0; });
  if (stuck == waits.end()) return {};

  // Each stuck task waits for another stuck one: going back from any of them must come round.
  std::vector<std::int32_t> awaited(workload.tasks(), -1);
  for_each_wait(workload, [&](std::int32_t before, std::int32_t after) {
    if (waits[at(before)] > 0 && awaited[at(after)] < 0) awaited[at(after)] = before;
  });
  std::vector<bool> seen(workload.tasks(), false);
  auto task = static_cast<std::int32_t>(stuck - waits.begin());
  while (!seen[at(task)]) {
    seen[at(task)] = true;
    task = awaited[at(task)];
  }
  std::vector<TaskId> cycle;
  const std::int32_t first = task;
  do {
    cycle.push_back(TaskId(task));
    task = awaited[at(task)];
  } while (task != first);
  std::reverse(cycle.begin(), cycle.end());
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  return cycle;
}

}  // namespace stepcast::sim
