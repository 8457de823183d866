// SPDX-License-Identifier: Apache-2.0
// Cause before effect in a replay: what a program's data asks for (program/data_flow.h) is there in
// its times, and every wait is a path of the workload.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "predict/simulation.h"

namespace stepcast {

// Returns the first fault of the steps' times.
std::optional<std::string> broken_cause(const SimulationInput& input, const Simulation& simulation);

// A wait of the program, the way over instructions that do nothing included, for which there is no
// path between its tasks. The tasks are those of `Simulation::tasks`.
std::optional<std::string> lost_wait(
    const SimulationInput& input, const sim::Workload& workload,
    const std::vector<std::vector<std::vector<InstructionTasks>>>& tasks);

}  // namespace stepcast
