// SPDX-License-Identifier: Apache-2.0
// Program + classes + prices -> workload of the engine -> replay. One set of streams per rank
// class; a collective is one task with a member for each rank class of its group class.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cost/host_memory.h"
#include "predict/run_costs.h"
#include "predict/symmetry.h"
#include "program/program.h"
#include "sim/engine.h"

namespace stepcast {

struct Scenario;
struct StepDraws;

// Tasks of one instruction of one rank class in one step. Invalid: it took no time (a group of
// one), or, for the host, its issue binds nothing of its own (predict/host_plan.h).
struct InstructionTasks {
  sim::TaskId host;
  sim::TaskId device;        // of a pass in several tasks: its last on the computing stream
  sim::TaskId device_begin;  // = device, or the first of those
  std::int32_t parts = -1;   // of a pass in several tasks: into Simulation::parts
  bool is_in_parts() const { return parts >= 0; }
};

struct Simulation {
  sim::Replay replay;
  std::int32_t steps = 0;
  // [step][class][instruction]; of a step that begins at its barrier, nothing before that.
  std::vector<std::vector<std::vector<InstructionTasks>>> tasks;
  std::vector<std::vector<PartTasks>> parts;  // by PassTasks::tasks
  std::size_t task_count = 0;
};

struct SimulationInput {
  const Scenario& scenario;
  const Program& program;
  const RankGrid& grid;
  const Traffic& traffic;
  const Symmetry& symmetry;
  const RunCosts& costs;
  const HostFit& host;
  bool expand;
  bool contention;             // transfers share links
  bool alone = false;          // the only class is a rank without the others: transfers are free
  double sms_per_channel = 1;  // that collectives take from kernels (cost/profile.h)
  const Stamps& stamps = kNoStamps;
  std::optional<HostMemory> host_memory = {};  // measured (cost/host_memory.h)
  bool check = false;                          // PredictOptions::check
  const StepDraws* draws = nullptr;            // of a sample; null: runs take what they are priced

  // The groups of a run whose collectives load links.
  const std::vector<AxisGroup>& stamped(std::int32_t rank_class, std::int32_t i) const {
    static const std::vector<AxisGroup> none;
    if (stamps.empty()) return none;
    const auto stage = static_cast<std::size_t>(costs.role(rank_class).stage);
    return stamps[stage][static_cast<std::size_t>(i)];
  }
  const PassTasks& tasks_of_pass(std::int32_t rank_class, std::int32_t i) const {
    const Role& role = costs.role(rank_class);
    return costs.tasks(rank_class, role.instructions[static_cast<std::size_t>(i)],
                       stamped(rank_class, i), expand);
  }
};

// When the instruction ran in a replayed step. Each of two passes that alternate has a part of the
// time of their pair, the first of them the first part.
struct TimeSpan {
  sim::Time begin, end;
};
TimeSpan span_of(const SimulationInput& input, const sim::Replay& replay,
                 const InstructionTasks& tasks, std::int32_t rank_class,
                 const Instruction& instruction);

// Replays `steps` steps. An unsound program gives an error that names the instructions of a cycle.
//
// If all hosts wait for a collective (the norm of the gradients) that ends everywhere at one
// instant with nothing else in flight, each step is the one before, shifted. Then two steps come
// back whatever `steps` says, the first of them from that barrier on, and they are periodic.
Result<Simulation> simulate(const SimulationInput& input, std::int32_t steps);

}  // namespace stepcast
