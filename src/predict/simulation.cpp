// SPDX-License-Identifier: Apache-2.0
#include "predict/simulation.h"

#include "predict/workload_builder.h"
#include "program/pass_pair.h"

namespace stepcast {
namespace {

using Tasks = std::vector<InstructionTasks>;

// None of the tasks [begin, end) ends after `time`.
bool have_ended(const sim::Replay& replay, const Tasks& tasks, std::size_t begin, std::size_t end,
                sim::Time time) {
  for (std::size_t i = begin; i < end; ++i) {
    const sim::TaskId task = tasks[i].device;
    if (task.valid() && replay.tasks[task.index()].end > time) return false;
  }
  return true;
}

// All classes pass their barriers at one instant, and nothing issued before them is under way then.
bool is_quiet(const Simulation& simulation, const std::vector<std::int32_t>& barrier) {
  const auto& tail = simulation.tasks.front();
  const auto& step = simulation.tasks.back();
  const auto end_of_barrier = [&](std::size_t c) {
    const sim::TaskId task = step[c][static_cast<std::size_t>(barrier[c])].device;
    return simulation.replay.tasks[task.index()].end;
  };
  const sim::Time meeting = end_of_barrier(0);
  for (std::size_t c = 0; c < step.size(); ++c) {
    const auto last = static_cast<std::size_t>(barrier[c]);
    if (end_of_barrier(c) != meeting ||
        !have_ended(simulation.replay, tail[c], last + 1, tail[c].size(), meeting) ||
        !have_ended(simulation.replay, step[c], 0, last, meeting)) {
      return false;
    }
  }
  return true;
}

// Work after the last barrier runs beside the next step, which was not replayed. The same work was
// replayed one period earlier, after the barrier at time zero.
void complete_last_step(Simulation& simulation, const std::vector<std::int32_t>& barrier) {
  const auto& tail = simulation.tasks.front();
  const auto& step = simulation.tasks.back();
  std::vector<sim::Interval>& intervals = simulation.replay.tasks;
  const sim::TaskId meeting = step.front()[static_cast<std::size_t>(barrier.front())].device;
  const sim::Duration period{intervals[meeting.index()].end.ps};
  const auto at = [](std::int32_t parts) { return static_cast<std::size_t>(parts); };
  const auto shift = [&](sim::TaskId from, sim::TaskId to) {
    if (!from.valid() || !to.valid()) return;
    const sim::Interval& early = intervals[from.index()];
    intervals[to.index()] = {early.posted + period, early.start + period, early.end + period};
  };
  for (std::size_t c = 0; c < step.size(); ++c) {
    for (auto i = static_cast<std::size_t>(barrier[c]) + 1; i < step[c].size(); ++i) {
      shift(tail[c][i].host, step[c][i].host);
      shift(tail[c][i].device, step[c][i].device);
      if (!step[c][i].is_in_parts()) continue;
      const std::vector<PartTasks>& from = simulation.parts[at(tail[c][i].parts)];
      const std::vector<PartTasks>& to = simulation.parts[at(step[c][i].parts)];
      for (std::size_t part = 0; part < from.size(); ++part) {
        shift(from[part].host, to[part].host);
        shift(from[part].device, to[part].device);
      }
    }
  }
}

}  // namespace

TimeSpan span_of(const SimulationInput& input, const sim::Replay& replay,
                 const InstructionTasks& tasks, std::int32_t rank_class, const Instruction& what) {
  TimeSpan out{replay.tasks[tasks.device_begin.index()].start,
               replay.tasks[tasks.device.index()].end};
  if (!alternates(what)) return out;
  const double share = input.costs.share_of_pair(rank_class, what);
  const sim::Duration own = sim::duration(sim::seconds(out.end - out.begin) * share);
  if (leads_pair(what)) {
    out.end = out.begin + own;
  } else {
    out.begin = {out.end.ps - own.ps};
  }
  return out;
}

Result<Simulation> simulate(const SimulationInput& input, std::int32_t steps) {
  const auto partner = match_transfers(input.program);
  if (!partner) return failure(partner.error());
  const std::vector<std::int32_t> whole(input.symmetry.ranks.size(), 0);
  {
    WorkloadBuilder builder(input, *partner);
    const std::vector<std::int32_t> barrier = builder.barrier();
    if (!barrier.empty()) {
      std::vector<std::int32_t> behind = barrier;
      for (std::int32_t& begin : behind) ++begin;
      builder.add_step(behind);
      builder.add_step(whole);
      auto simulation = builder.replay();
      if (!simulation) return simulation;
      if (is_quiet(*simulation, barrier)) {
        complete_last_step(*simulation, barrier);
        return simulation;
      }
    }
  }
  WorkloadBuilder builder(input, *partner);
  // Replays one step more than asked for, because the end of a step runs beside the beginning of
  // the next.
  for (std::int32_t step = 0; step <= steps; ++step) builder.add_step(whole);
  auto simulation = builder.replay();
  if (simulation) {
    simulation->steps = steps;
    simulation->tasks.pop_back();
  }
  return simulation;
}

}  // namespace stepcast
