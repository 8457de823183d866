// SPDX-License-Identifier: Apache-2.0
#include "predict/record_trace.h"

#include <algorithm>
#include <map>

#include "core/work_limits.h"
#include "predict/attribution.h"
#include "predict/memory_replay.h"
#include "predict/prediction.h"
#include "program/pass_pair.h"

namespace stepcast {
namespace {

Seconds after(sim::Time time, sim::Time origin) {
  return Seconds(static_cast<double>(time.ps - origin.ps) * 1e-12);
}

// Draws the operations of runs.
class OperationTrace {
 public:
  OperationTrace(const SimulationInput& input, const Simulation& simulation, sim::Time origin,
                 std::int32_t c, bool kernels, Prediction& out)
      : in_(input),
        simulation_(simulation),
        origin_(origin),
        class_(c),
        kernels_(kernels),
        out_(out) {}

  void run(const Instruction& what, std::int32_t i, const InstructionTasks& tasks);

 private:
  void draw(const Instruction& what, const Operation& operation, Seconds start, Seconds time);
  void draw_tasks(const Instruction& what, std::span<const PassTask> pass,
                  const std::vector<sim::Interval>& when, Seconds begin, double stretch);
  const Instruction& owner(const Instruction& what, const Operation& operation) const;

  const SimulationInput& in_;
  const Simulation& simulation_;
  sim::Time origin_;
  std::int32_t class_;
  bool kernels_;
  Prediction& out_;
  std::map<const PassTasks*, std::vector<sim::Interval>> alone_;  // of passes in one piece
};

// The second of two passes that alternate has the operations of the forward.
const Instruction& OperationTrace::owner(const Instruction& what,
                                         const Operation& operation) const {
  const bool is_other = alternates(what) && operation.phase == Phase::kForward;
  return is_other ? *(&what + 1) : what;
}

void OperationTrace::draw(const Instruction& what, const Operation& operation, Seconds start,
                          Seconds time) {
  if (time.value() <= 0) return;
  if (!kernels_ && stream_of(operation.stream) == Stream::kCompute) return;
  const auto* collective = std::get_if<Collective>(&operation.work);
  TraceSlice slice = slice_of(owner(what, operation), class_, start, time);
  slice.name = operation.name;
  slice.phase = operation.phase;
  slice.stream = stream_of(operation.stream);
  slice.collective = collective != nullptr;
  slice.bytes = collective != nullptr ? collective->bytes : 0;
  if (collective != nullptr) {
    slice.sent = find_sent(out_.collectives, in_.costs.role(class_).stage, collective->group,
                           message_of(*collective));
  }
  out_.slices.push_back(std::move(slice));
}

// Each task at its time behind `begin`, with `stretch` times that length; what one runs follows
// each other.
void OperationTrace::draw_tasks(const Instruction& what, std::span<const PassTask> pass,
                                const std::vector<sim::Interval>& when, Seconds begin,
                                double stretch) {
  std::vector<const PricedOperation*> operations;
  for (const RunCosts::PricedBlock* block : in_.costs.blocks(class_, what)) {
    for (const PricedOperation& one : block->operations) operations.push_back(&one);
  }
  for (std::size_t k = 0; k < when.size(); ++k) {
    const PassTask& task = pass[k];
    const Seconds time = sim::seconds(when[k].end - when[k].start) * stretch;
    Seconds at = begin + sim::seconds(when[k].start) * stretch;
    if (task.call != nullptr) {
      draw(what, *task.call, at, time);
      continue;
    }
    const double longer = task.cost.gpu.value() > 0 ? time / task.cost.gpu : 1.0;
    for (std::int32_t i = task.begin; i < task.end; ++i) {
      const PricedOperation& one = *operations[static_cast<std::size_t>(i)];
      draw(what, *one.operation, at, one.cost.gpu * longer);
      at += one.cost.gpu * longer;
    }
  }
}

// A pass in several tasks as it was replayed; one in one piece as it runs alone, stretched to the
// time that it took.
void OperationTrace::run(const Instruction& what, std::int32_t i, const InstructionTasks& tasks) {
  if (alternates(what) && !leads_pair(what)) return;  // drawn with the first of the two
  const std::vector<sim::Interval>& replayed = simulation_.replay.tasks;
  if (tasks.is_in_parts()) {
    std::vector<sim::Interval> when;
    for (const PartTasks& part : simulation_.parts[static_cast<std::size_t>(tasks.parts)]) {
      when.push_back(replayed[part.device.index()]);
    }
    draw_tasks(what, in_.tasks_of_pass(class_, i).tasks, when, after({}, origin_), 1);
    return;
  }
  const Seconds gpu = in_.costs.run(class_, what).gpu;
  if (gpu.value() <= 0) return;
  const PassTasks& pass = in_.costs.tasks(class_, what, {}, true);
  const auto [alone, fresh] = alone_.try_emplace(&pass);
  if (fresh) alone->second = replay_alone(pass.tasks);
  const sim::Time start = replayed[tasks.device_begin.index()].start;
  const Seconds time = sim::seconds(replayed[tasks.device.index()].end - start);
  draw_tasks(what, pass.tasks, alone->second, after(start, origin_), time / gpu);
}

// Records in the order of time: host order and the order of several streams differ.
void record_memory(const SimulationInput& input, const Simulation& simulation, sim::Time origin,
                   std::int32_t c, Prediction& prediction) {
  const auto& tasks = simulation.tasks.back()[static_cast<std::size_t>(c)];
  const auto first = static_cast<std::ptrdiff_t>(prediction.memory_samples.size());
  replay_memory(input.program, input.costs.role(c), [&](const MemoryMoment& moment) {
    const InstructionTasks& own = tasks[static_cast<std::size_t>(moment.instruction)];
    if (!own.device.valid()) return;
    const Instruction& what =
        input.costs.role(c).instructions[static_cast<std::size_t>(moment.instruction)];
    const auto [begin, end] = span_of(input, simulation.replay, own, c, what);
    prediction.memory_samples.push_back(
        {c, after(begin, origin) + sim::seconds(end - begin) * moment.fraction, moment.parts});
  });
  std::stable_sort(prediction.memory_samples.begin() + first, prediction.memory_samples.end(),
                   [](const MemorySample& a, const MemorySample& b) { return a.at < b.at; });
}

}  // namespace

void record_trace(const SimulationInput& input, const Simulation& simulation, sim::Time origin,
                  bool kernels, Prediction& prediction) {
  const auto& step = simulation.tasks.back();
  for (std::int32_t c = 0; c < static_cast<std::int32_t>(step.size()); ++c) {
    end_if_stopped();
    const Role& role = input.costs.role(c);
    const auto& tasks = step[static_cast<std::size_t>(c)];
    OperationTrace operations(input, simulation, origin, c, kernels, prediction);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (!tasks[i].device.valid()) continue;
      const Instruction& what = role.instructions[i];
      const auto [begin, end] = span_of(input, simulation.replay, tasks[i], c, what);
      prediction.slices.push_back(
          slice_of(what, c, after(begin, origin), sim::seconds(end - begin)));
      if (const auto* call = what.as<CollectiveCall>()) {
        prediction.slices.back().sent =
            find_sent(prediction.collectives, role.stage, call->group, call->piece());
      }
      if (what.is_run()) operations.run(what, static_cast<std::int32_t>(i), tasks[i]);
    }
    record_memory(input, simulation, origin, c, prediction);
  }
}

}  // namespace stepcast
