// SPDX-License-Identifier: Apache-2.0
#include "predict/path_of_tasks.h"

#include <numeric>

namespace stepcast {
namespace {

std::size_t index_at(std::int32_t index) { return static_cast<std::size_t>(index); }

}  // namespace

PathOfTasks::PathOfTasks(const SimulationInput& input, const sim::Workload& workload,
                         const Simulation& simulation)
    : in_(input), workload_(workload), simulation_(simulation), run_of_(workload.tasks(), -1) {
  const auto own = [&](sim::TaskId task) {
    if (task.valid()) run_of_[task.index()] = static_cast<std::int32_t>(runs_.size()) - 1;
  };
  for (std::size_t step = 0; step < simulation.tasks.size(); ++step) {
    for (std::size_t c = 0; c < simulation.tasks[step].size(); ++c) {
      const auto& list = in_.costs.role(static_cast<std::int32_t>(c)).instructions;
      for (std::size_t i = 0; i < list.size(); ++i) {
        const InstructionTasks& tasks = simulation.tasks[step][c][i];
        if (!list[i].is_run() || !tasks.device.valid() || run_of_[tasks.device.index()] >= 0) {
          continue;
        }
        runs_.push_back({static_cast<std::int32_t>(step), static_cast<std::int32_t>(c),
                         static_cast<std::int32_t>(i)});
        own(tasks.device);
        if (!tasks.is_in_parts()) continue;
        for (const PartTasks& part : simulation.parts[index_at(tasks.parts)]) {
          // A task that meets other ranks is nobody's own.
          if (part.device.valid() && workload.members_of(part.device.value).size() == 1) {
            own(part.device);
          }
        }
      }
    }
  }
  first_.assign(workload.member_table().size() + 1, 0);
  for (const auto& edge : workload.edges()) ++first_[index_at(edge.after_member) + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  from_.resize(workload.edges().size());
  std::vector<std::int32_t> next = first_;
  for (const auto& edge : workload.edges()) {
    from_[index_at(next[index_at(edge.after_member)]++)] = edge.before_task;
  }
}

StepEnd PathOfTasks::end_of_step(std::int32_t step) const {
  StepEnd out;
  const auto& classes = simulation_.tasks[index_at(step)];
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const auto& list = in_.costs.role(static_cast<std::int32_t>(c)).instructions;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const sim::TaskId task = classes[c][i].device;
      if (list[i].stream != Stream::kCompute || !task.valid()) continue;
      const sim::Time end = simulation_.replay.tasks[task.index()].end;
      if (!out.task.valid() || end > out.time) out = {task, end};
    }
  }
  return out;
}

// The last to end of those that it waited for: before it on its streams, in its dependencies, or
// its issue.
std::int32_t PathOfTasks::before(std::int32_t task) const {
  const auto& intervals = simulation_.replay.tasks;
  std::int32_t out = -1;
  const auto look_at = [&](std::int32_t other, sim::Time time) {
    if (out < 0 || time > intervals[index_at(out)].end) out = other;
  };
  const auto& members = workload_.member_table();
  for (const sim::Workload::Member& member : workload_.members_of(task)) {
    const auto number = static_cast<std::int32_t>(&member - members.data());
    const auto* bond = workload_.bond_of(member);
    if (bond != nullptr && member.issuer >= 0) {
      const std::int64_t issued = intervals[index_at(member.issuer)].start.ps + bond->floor_ps;
      if (issued == intervals[index_at(task)].end.ps) return member.issuer;
    }
    if (member.previous >= 0) {
      const std::int32_t other = members[index_at(member.previous)].task;
      look_at(other, intervals[index_at(other)].end);
    }
    for (std::int32_t e = first_[index_at(number)]; e < first_[index_at(number) + 1]; ++e) {
      look_at(from_[index_at(e)], intervals[index_at(from_[index_at(e)])].end);
    }
  }
  return out;
}

std::vector<RunOnPath> PathOfTasks::walk(sim::TaskId last, sim::Time begin) const {
  std::vector<RunOnPath> out;
  std::int32_t seen = -1;  // tasks of one run follow each other
  for (std::int32_t task = last.value; task >= 0; task = before(task)) {
    if (simulation_.replay.tasks[index_at(task)].end <= begin) break;
    const std::int32_t run = run_of_[index_at(task)];
    if (run < 0 || run == seen) continue;
    seen = run;
    out.push_back(runs_[index_at(run)]);
  }
  return out;
}

}  // namespace stepcast
