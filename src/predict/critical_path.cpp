// SPDX-License-Identifier: Apache-2.0
#include "predict/critical_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "predict/prediction.h"

namespace stepcast {
namespace {

using sim::Time;

class PathWalker {
 public:
  PathWalker(const SimulationInput& input, const Simulation& simulation)
      : in_(input),
        replay_(simulation.replay),
        tasks_(simulation.tasks.back()),
        parts_(simulation.parts),
        members_(simulation.replay.tasks.size()) {
    for (std::size_t c = 0; c < tasks_.size(); ++c) {
      cursor_.push_back(static_cast<std::int32_t>(tasks_[c].size()) - 1);
      const Role& role = in_.costs.role(static_cast<std::int32_t>(c));
      for (std::size_t i = 0; i < tasks_[c].size(); ++i) {
        if (role.instructions[i].transfer() == nullptr) continue;
        if (tasks_[c][i].device.valid()) add_member(tasks_[c][i].device, c);
      }
    }
  }

  std::vector<PathStep> walk(std::size_t c, Time from, Time to);

 private:
  const sim::Interval& interval(sim::TaskId task) const { return replay_.tasks[task.index()]; }
  const Instruction& instruction(std::size_t c, std::int32_t i) const {
    return in_.costs.role(static_cast<std::int32_t>(c)).instructions[static_cast<std::size_t>(i)];
  }
  Time end_of(std::size_t c, std::int32_t i) const {
    const InstructionTasks& tasks = tasks_[c][static_cast<std::size_t>(i)];
    return span_of(in_, replay_, tasks, static_cast<std::int32_t>(c), instruction(c, i)).end;
  }
  void add_member(sim::TaskId task, std::size_t c) {
    Members& members = members_[task.index()];
    if (members.first == kNobody) {
      members.first = static_cast<std::int32_t>(c);
    } else if (members.other == kNobody && members.first != static_cast<std::int32_t>(c)) {
      members.other = static_cast<std::int32_t>(c);
    }
  }
  // The last compute-stream instruction of class c that ends no later than `time`; -1: none.
  std::int32_t before(std::size_t c, Time time);
  // Explains the wait of `waiter` since its stream was free at `free`; moves `now_` and the class.
  void explain_wait(std::size_t& c, std::int32_t waiter, Time free);
  // Task by task: what the pass computed, its calls, and what it waited for beside that.
  void add_parts(std::size_t c, std::int32_t i);
  void add(std::string what, Time since);
  std::string name(std::size_t c, const Instruction& what) const;

  const SimulationInput& in_;
  const sim::Replay& replay_;
  const std::vector<std::vector<InstructionTasks>>& tasks_;
  const std::vector<std::vector<PartTasks>>& parts_;
  std::vector<std::int32_t> cursor_;
  static constexpr std::int32_t kNobody = -1;
  struct Members {  // the first two classes of a transfer
    std::int32_t first = kNobody, other = kNobody;
  };
  std::vector<Members> members_;  // by task
  std::map<std::string, double> sum_;
  Time now_, begin_;
};

std::string PathWalker::name(std::size_t c, const Instruction& what) const {
  const std::int32_t stage = in_.costs.role(static_cast<std::int32_t>(c)).stage;
  if (in_.program.roles.size() == 1 || what.phase() == Phase::kOptimizer) return what.name;
  return fmt::format("{}, stage {}", what.name, stage);
}

void PathWalker::add(std::string what, Time since) {
  since = std::max(since, begin_);
  if (since >= now_) return;
  sum_[std::move(what)] += sim::seconds(now_ - since).value();
  now_ = since;
}

std::int32_t PathWalker::before(std::size_t c, Time time) {
  std::int32_t& i = cursor_[c];
  for (; i >= 0; --i) {
    const sim::TaskId task = tasks_[c][static_cast<std::size_t>(i)].device;
    if (instruction(c, i).stream == Stream::kCompute && task.valid() && end_of(c, i) <= time) {
      break;
    }
  }
  return i;
}

void PathWalker::explain_wait(std::size_t& c, std::int32_t waiter, Time free) {
  std::int32_t latest = -1;
  Time end = free;
  for (const std::int32_t wait :
       in_.costs.waits(static_cast<std::int32_t>(c), static_cast<std::size_t>(waiter))) {
    const sim::TaskId task = tasks_[c][static_cast<std::size_t>(wait)].device;
    if (!task.valid() || interval(task).end <= end || interval(task).end > now_) continue;
    latest = wait;
    end = interval(task).end;
  }
  if (latest < 0) {
    add("host", free);
    return;
  }
  add("host", end);
  const Instruction& awaited = instruction(c, latest);
  const sim::TaskId task = tasks_[c][static_cast<std::size_t>(latest)].device;
  const Time start = interval(task).start;
  add(awaited.transfer() == nullptr ? awaited.name : "transfer between stages",
      std::max(start, free));
  if (start <= free) return;
  // The last member to post released the transfer: the other end, where it was still at work.
  const Members& members = members_[task.index()];
  for (const std::int32_t member : {members.first, members.other}) {
    if (member != kNobody && member != static_cast<std::int32_t>(c)) {
      c = static_cast<std::size_t>(member);
      return;
    }
  }
  explain_wait(c, latest, free);
}

void PathWalker::add_parts(std::size_t c, std::int32_t i) {
  const PassTasks& pass = in_.tasks_of_pass(static_cast<std::int32_t>(c), i);
  const InstructionTasks& own = tasks_[c][static_cast<std::size_t>(i)];
  const std::vector<PartTasks>& parts = parts_[static_cast<std::size_t>(own.parts)];
  const std::string computed = name(c, instruction(c, i));
  for (std::size_t k = parts.size(); k-- > 0;) {
    const PassTask& task = pass.tasks[k];
    const sim::Interval& when = interval(parts[k].device);
    if (task.stream != Stream::kCompute) continue;
    if (now_ > when.end) add("host", when.end);
    add(task.call != nullptr ? task.call->name : computed, when.start);
    for (const std::int32_t before : task.after) {
      const auto j = static_cast<std::size_t>(before);
      const sim::Interval& awaited = interval(parts[j].device);
      const Operation* call = pass.tasks[j].call;
      if (awaited.end == when.start && call != nullptr) add(call->name, awaited.start);
    }
  }
}

std::vector<PathStep> PathWalker::walk(std::size_t c, Time from, Time to) {
  now_ = to;
  begin_ = from;
  std::int32_t waiter = -1;
  while (now_ > begin_) {
    const std::int32_t i = before(c, now_);
    const Time end = i < 0 ? begin_ : end_of(c, i);
    if (end < now_ && waiter >= 0) {
      const std::size_t waiting = c;
      explain_wait(c, waiter, std::max(end, begin_));
      waiter = -1;
      if (c != waiting) continue;
    }
    if (end < now_) add("step boundary", end);
    if (i < 0) break;
    const InstructionTasks& tasks = tasks_[c][static_cast<std::size_t>(i)];
    const Instruction& what = instruction(c, i);
    if (!in_.stamped(static_cast<std::int32_t>(c), i).empty()) add_parts(c, i);
    const Time start = span_of(in_, replay_, tasks, static_cast<std::int32_t>(c), what).begin;
    add(name(c, what), start);
    waiter = i;
    --cursor_[c];
  }
  add("step boundary", begin_);
  std::vector<PathStep> path;
  for (const auto& [what, time] : sum_) path.push_back({what, Seconds(time)});
  std::stable_sort(path.begin(), path.end(),
                   [](const PathStep& a, const PathStep& b) { return a.time > b.time; });
  return path;
}

}  // namespace

std::vector<PathStep> find_critical_path(const SimulationInput& input, const Simulation& simulation,
                                         const std::vector<ClassTimeline>& timelines,
                                         std::size_t critical_class) {
  const ClassTimeline& critical = timelines[critical_class];
  return PathWalker(input, simulation).walk(critical_class, critical.step_begin, critical.step_end);
}

}  // namespace stepcast
