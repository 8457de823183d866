// SPDX-License-Identifier: Apache-2.0
#include "predict/check_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "program/check_causality.h"
#include "program/stream_clock.h"

namespace stepcast {
namespace {

using Clock = StreamClock<kStreams>;

// Times of one class, step by step.
class ClassCheck {
 public:
  ClassCheck(const SimulationInput& input, const Simulation& simulation, std::int32_t c,
             const DataFlow& flow)
      : in_(input),
        simulation_(simulation),
        class_(c),
        role_(input.costs.role(c)),
        flow_(flow),
        now_(role_.instructions.size()) {}

  std::optional<std::string> run() {
    for (const auto& step : simulation_.tasks) {
      before_ = std::exchange(now_, std::vector<std::int64_t>(role_.instructions.size(), 0));
      const auto& tasks = step[static_cast<std::size_t>(class_)];
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (auto broken = check(i, tasks[i])) return broken;
      }
    }
    return std::nullopt;
  }

 private:
  const sim::Interval& interval(sim::TaskId task) const {
    return simulation_.replay.tasks[task.index()];
  }
  // When it has ended; of what does nothing, and of what was not replayed, when what it follows
  // has.
  std::int64_t end_of(std::int32_t before) const {
    const auto count = static_cast<std::int32_t>(now_.size());
    return before >= 0 ? now_[static_cast<std::size_t>(before)]
                       : before_[static_cast<std::size_t>(before + count)];
  }

  std::optional<std::string> check(std::size_t i, const InstructionTasks& own) {
    const auto index = static_cast<std::int32_t>(i);
    const auto fail = [&](const std::string& what) {
      return fmt::format("{}: {}", describe(role_, index), what);
    };
    if (!own.device.valid()) {
      for (const std::int32_t before : flow_.after[i]) now_[i] = std::max(now_[i], end_of(before));
      return std::nullopt;
    }
    const std::int64_t start = interval(own.device_begin).start.ps;
    const std::int64_t end = interval(own.device).end.ps;
    if (start < 0 || end < start) return fail(fmt::format("it runs from {} to {} ps", start, end));
    for (const std::int32_t before : flow_.after[i]) {
      if (end_of(before) <= start) continue;
      const auto count = static_cast<std::int32_t>(now_.size());
      return fail(fmt::format("it starts {} ps before the end of {}{}, whose data it uses",
                              end_of(before) - start, before < 0 ? "the step before, " : "",
                              describe(role_, (before + count) % count)));
    }
    // Passes that alternate are one task.
    std::int64_t& last = ended_[static_cast<std::size_t>(role_.instructions[i].stream)];
    if (own.device != last_task_ && start < last) return fail("its stream is not free");
    last = std::max(last, end);
    last_task_ = own.device;
    now_[i] = end;
    return check_parts(i, own);
  }

  std::optional<std::string> check_parts(std::size_t i, const InstructionTasks& own) {
    if (!own.is_in_parts()) return std::nullopt;
    const PassTasks& pass = in_.tasks_of_pass(class_, static_cast<std::int32_t>(i));
    const auto& parts = simulation_.parts[static_cast<std::size_t>(own.parts)];
    for (std::size_t k = 0; k < parts.size() && k < pass.tasks.size(); ++k) {
      for (const std::int32_t before : pass.tasks[k].after) {
        const sim::TaskId awaited = parts[static_cast<std::size_t>(before)].device;
        if (interval(awaited).end <= interval(parts[k].device).start) continue;
        return fmt::format("{}: task {} starts before task {} has ended",
                           describe(role_, static_cast<std::int32_t>(i)), k, before);
      }
    }
    return std::nullopt;
  }

  const SimulationInput& in_;
  const Simulation& simulation_;
  std::int32_t class_;
  const Role& role_;
  const DataFlow& flow_;
  std::vector<std::int64_t> before_, now_;      // ends by instruction, in two steps
  std::array<std::int64_t, kStreams> ended_{};  // of each stream's last task
  sim::TaskId last_task_;
};

// Dependencies by the task that waits.
struct Incoming {
  std::vector<std::size_t> begin;
  std::vector<std::int32_t> before;
};

Incoming incoming(const sim::Workload& workload) {
  Incoming out;
  out.begin.assign(workload.tasks() + 1, 0);
  const auto after = [&](const sim::Workload::Edge& edge) {
    return static_cast<std::size_t>(
        workload.member_table()[static_cast<std::size_t>(edge.after_member)].task);
  };
  for (const sim::Workload::Edge& edge : workload.edges()) ++out.begin[after(edge) + 1];
  for (std::size_t t = 1; t < out.begin.size(); ++t) out.begin[t] += out.begin[t - 1];
  out.before.resize(workload.edges().size());
  std::vector<std::size_t> next = out.begin;
  for (const sim::Workload::Edge& edge : workload.edges()) {
    out.before[next[after(edge)]++] = edge.before_task;
  }
  return out;
}

// The paths between the tasks of one class in one step.
class PathCheck {
 public:
  PathCheck(const Role& role, const RankGrid& grid)
      : role_(role), asked_(ended_before(role, false)) {
    std::array<std::int32_t, kStreams> last{};
    last.fill(-1);
    for (std::size_t i = 0; i < role.instructions.size(); ++i) {
      const Instruction& what = role.instructions[i];
      const auto stream = static_cast<std::size_t>(what.stream);
      if (!is_idle(what, grid)) last[stream] = static_cast<std::int32_t>(i);
      working_.push_back(last[stream]);
    }
  }

  std::optional<std::string> check(const Incoming& edges, std::vector<std::int32_t>& owner,
                                   const std::vector<InstructionTasks>& tasks) {
    std::vector<Clock> ends(tasks.size());
    std::array<Clock, kStreams> last;
    for (Clock& clock : last) clock.fill(-1);
    std::optional<std::string> lost;
    for (std::size_t i = 0; i < tasks.size() && !lost; ++i) {
      if (!tasks[i].device.valid()) continue;
      const auto own = static_cast<std::size_t>(role_.instructions[i].stream);
      Clock known = last[own];
      const std::size_t task = tasks[i].device_begin.index();
      for (std::size_t e = edges.begin[task]; e < edges.begin[task + 1]; ++e) {
        const std::int32_t before = owner[static_cast<std::size_t>(edges.before[e])];
        if (before < 0 || before == static_cast<std::int32_t>(i)) continue;
        follow(known, ends[static_cast<std::size_t>(before)]);
      }
      lost = lacks(i, known, tasks);
      known[own] = static_cast<std::int32_t>(i);
      ends[i] = last[own] = known;
      for (const sim::TaskId made : {tasks[i].device_begin, tasks[i].device}) {
        owner[made.index()] = static_cast<std::int32_t>(i);
      }
    }
    for (const InstructionTasks& own : tasks) {
      if (!own.device.valid()) continue;
      owner[own.device.index()] = owner[own.device_begin.index()] = -1;
    }
    return lost;
  }

 private:
  std::optional<std::string> lacks(std::size_t i, const Clock& known,
                                   const std::vector<InstructionTasks>& tasks) const {
    for (std::size_t s = 0; s < known.size(); ++s) {
      const std::int32_t latest = asked_[i][s];
      if (latest < 0 || s == static_cast<std::size_t>(Stream::kHost)) continue;
      const std::int32_t wanted = working_[static_cast<std::size_t>(latest)];
      if (wanted < 0 || known[s] >= wanted) continue;
      if (!tasks[static_cast<std::size_t>(wanted)].device.valid()) continue;  // not replayed
      return fmt::format("{} has no path from {}", describe(role_, static_cast<std::int32_t>(i)),
                         describe(role_, wanted));
    }
    return std::nullopt;
  }

  const Role& role_;
  std::vector<Clock> asked_;           // by instruction
  std::vector<std::int32_t> working_;  // the last of its stream up to it that is not idle
};

}  // namespace

std::optional<std::string> broken_cause(const SimulationInput& input,
                                        const Simulation& simulation) {
  std::vector<DataFlow> flows;
  for (const Role& role : input.program.roles) {
    flows.push_back(data_flow(input.program, role, input.grid));
    if (flows.back().fault) return flows.back().fault;
  }
  const auto classes = static_cast<std::int32_t>(input.symmetry.ranks.size());
  for (std::int32_t c = 0; c < classes; ++c) {
    const auto stage = static_cast<std::size_t>(input.costs.role(c).stage);
    if (auto broken = ClassCheck(input, simulation, c, flows[stage]).run()) return broken;
  }
  return std::nullopt;
}

std::optional<std::string> lost_wait(
    const SimulationInput& input, const sim::Workload& workload,
    const std::vector<std::vector<std::vector<InstructionTasks>>>& tasks) {
  std::vector<PathCheck> checks;
  for (const Role& role : input.program.roles) checks.emplace_back(role, input.grid);
  const Incoming edges = incoming(workload);
  std::vector<std::int32_t> owner(workload.tasks(), -1);  // of the class and step at hand
  for (const auto& step : tasks) {
    for (std::size_t c = 0; c < step.size(); ++c) {
      const Role& role = input.costs.role(static_cast<std::int32_t>(c));
      PathCheck& check = checks[static_cast<std::size_t>(role.stage)];
      if (auto lost = check.check(edges, owner, step[c])) return lost;
    }
  }
  return std::nullopt;
}

}  // namespace stepcast
