// SPDX-License-Identifier: Apache-2.0
// The memory of this machine that a forecast will take, from counts, before it takes it. A forecast
// that needs more than memory_limit() (core/work_limits.h) is refused. What counts are the lists of
// instructions, the tasks of the replay and the kernels of a trace: of each there may be hundreds
// of millions, and of nothing else. The figures are right to about a half.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "predict/simulation.h"

namespace stepcast {

struct Scenario;

// Counts those of all stages in one step, at most, without lowering them.
double foreseen_instructions(const Scenario& scenario);

// Whether the program may be lowered, and replayed if its ranks fold to one for each stage. Gives
// what such a forecast comes to hold, at most.
Result<ByteCount> afford_program(const Scenario& scenario);

// Whether these classes may be replayed for so many steps.
Result<void> afford_replay(const SimulationInput& input, std::int32_t steps);

// Several that are replayed at once, each for its steps.
struct StepsToReplay {
  const SimulationInput* input;
  std::int32_t steps;
};
Result<void> afford_replays(const std::vector<StepsToReplay>& all);

// Whether every kernel of a step may be kept.
Result<void> afford_kernels(const SimulationInput& input);

}  // namespace stepcast
