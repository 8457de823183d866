// SPDX-License-Identifier: Apache-2.0
// Program + classes + prices -> workload of the engine -> replay. One set of streams per rank
// class; a collective is one task with a member for each rank class of its group class.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "predict/run_costs.h"
#include "predict/symmetry.h"
#include "sim/engine.h"

namespace stepcast {

// Tasks of one instruction of one rank class in one step. Invalid: it took no time (a group of
// one), or, for the host, its issue binds nothing of its own (predict/host_plan.h).
struct InstructionTasks {
  sim::TaskId host;
  sim::TaskId device;        // of an expanded run: its last kernel
  sim::TaskId device_begin;  // = device, or an expanded run's first kernel
};

struct Simulation {
  sim::Replay replay;
  std::int32_t steps = 0;
  // [step][class][instruction]; of a step that begins at its barrier, nothing before that.
  std::vector<std::vector<std::vector<InstructionTasks>>> tasks;
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
  std::function<bool()> stop = {};  // PredictOptions::stop
};

// Replays `steps` steps. An unsound program gives an error that names the instructions of a cycle.
//
// Where all hosts wait for a collective (the norm of the gradients) that ends everywhere at one
// instant with nothing else in flight, each step is the one before, shifted. Then two steps come
// back whatever `steps` says, the first of them from that barrier on, and they are periodic.
Result<Simulation> simulate(const SimulationInput& input, std::int32_t steps);

}  // namespace stepcast
