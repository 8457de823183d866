// SPDX-License-Identifier: Apache-2.0
#include "predict/record_trace.h"

#include <algorithm>

#include "predict/attribution.h"
#include "predict/memory_replay.h"
#include "program/pass_pair.h"

namespace stepcast {
namespace {

Seconds after(sim::Time time, sim::Time origin) {
  return Seconds(static_cast<double>(time.ps - origin.ps) * 1e-12);
}

// Operators of a run, as they follow each other and run beside each other in the replay of each
// block, stretched to the time that the run took.
void record_run(const SimulationInput& input, std::int32_t c, const Instruction& what,
                Seconds start, Seconds duration, Prediction& prediction) {
  const RunCost& cost = input.costs.run(c, what);
  if (cost.gpu.value() <= 0) return;
  const std::vector<RunCosts::PricedBlock> blocks = input.costs.operations(c, what);
  double stretch = duration / cost.gpu;
  if (alternates(what)) {
    // Its operations run in turn with another's; here they follow each other.
    Seconds alone;
    for (const RunCosts::PricedBlock& block : blocks) alone += replay_block(block).gpu;
    stretch = duration / alone;
  }
  Seconds begin = start;  // of the block
  for (const RunCosts::PricedBlock& block : blocks) {
    const std::vector<OperationSpan> spans = replay_spans(block, begin, stretch);
    for (std::size_t i = 0; i < block.size(); ++i) {
      begin = std::max(begin, spans[i].end);
      const Seconds time = block[i].cost.gpu * stretch;
      if (time.value() <= 0) continue;
      const Operation& operation = *block[i].operation;
      const auto* collective = std::get_if<Collective>(&operation.work);
      TraceSlice slice = slice_of(what, c, spans[i].start, time);
      slice.name = operation.name;
      slice.phase = operation.phase;
      slice.stream = stream_of(operation.stream);
      slice.collective = collective != nullptr;
      slice.bytes = collective != nullptr ? collective->bytes : 0;
      prediction.slices.push_back(std::move(slice));
    }
  }
}

// In order of time: host order and the order of several streams differ.
void record_memory(const SimulationInput& input, const Simulation& simulation, sim::Time origin,
                   std::int32_t c, Prediction& prediction) {
  const auto& tasks = simulation.tasks.back()[static_cast<std::size_t>(c)];
  const auto first = static_cast<std::ptrdiff_t>(prediction.memory_samples.size());
  replay_memory(input.program, input.costs.role(c), [&](const MemoryMoment& moment) {
    const InstructionTasks& own = tasks[static_cast<std::size_t>(moment.instruction)];
    if (!own.device.valid()) return;
    const sim::Time begin = simulation.replay.tasks[own.device_begin.index()].start;
    const sim::Time end = simulation.replay.tasks[own.device.index()].end;
    prediction.memory_samples.push_back(
        {c, after(begin, origin) + sim::seconds(end - begin) * moment.fraction, moment.parts});
  });
  std::stable_sort(prediction.memory_samples.begin() + first, prediction.memory_samples.end(),
                   [](const MemorySample& a, const MemorySample& b) { return a.at < b.at; });
}

}  // namespace

void record_trace(const SimulationInput& input, const Simulation& simulation, sim::Time origin,
                  Prediction& prediction) {
  const auto& step = simulation.tasks.back();
  for (std::int32_t c = 0; c < static_cast<std::int32_t>(step.size()); ++c) {
    const Role& role = input.costs.role(c);
    const auto& tasks = step[static_cast<std::size_t>(c)];
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (!tasks[i].device.valid()) continue;
      const Instruction& what = role.instructions[i];
      const sim::Interval& first = simulation.replay.tasks[tasks[i].device_begin.index()];
      const sim::Interval& last = simulation.replay.tasks[tasks[i].device.index()];
      const Seconds start = after(first.start, origin);
      const Seconds duration = sim::seconds(last.end - first.start);
      prediction.slices.push_back(slice_of(what, c, start, duration));
      if (what.is_run()) record_run(input, c, what, start, duration, prediction);
    }
    record_memory(input, simulation, origin, c, prediction);
  }
}

}  // namespace stepcast
