// SPDX-License-Identifier: Apache-2.0
// The tasks that each had to end for the next to start, from the end of a step back to its begin,
// in a replay of every rank. predict/critical_path.h names what a class waited for; this finds the
// very rank.
#pragma once

#include <cstdint>
#include <vector>

#include "predict/simulation.h"

namespace stepcast {

struct StepEnd {
  sim::TaskId task;  // the last to end on a computing stream
  sim::Time time;
};

struct RunOnPath {
  std::int32_t step, rank_class, instruction;
};

class PathOfTasks {
 public:
  PathOfTasks(const SimulationInput& input, const sim::Workload& workload,
              const Simulation& simulation);

  StepEnd end_of_step(std::int32_t step) const;
  // Runs on the way from the end of `last` back to `begin`, each once, the last first.
  std::vector<RunOnPath> walk(sim::TaskId last, sim::Time begin) const;

 private:
  std::int32_t before(std::int32_t task) const;  // -1: none

  const SimulationInput& in_;
  const sim::Workload& workload_;
  const Simulation& simulation_;
  std::vector<std::int32_t> run_of_;  // by task: into runs_, or -1
  std::vector<RunOnPath> runs_;
  std::vector<std::int32_t> first_, from_;  // tasks that a member waits for, by member
};

}  // namespace stepcast
