// SPDX-License-Identifier: Apache-2.0
// Splits the step of one rank class by what it is spent on. Each instant of the last replayed step
// counts for the first that applies: compute, optimizer, exposed communication, bubble, other
// (docs/terminology.md).
#pragma once

#include <array>

#include "predict/simulation.h"
#include "predict/time_parts.h"

namespace stepcast {

struct ClassTimeline {
  sim::Time step_begin, step_end;  // ends of the last compute-stream task of two successive steps
  TimeParts parts;                 // adds up to step_end - step_begin
  sim::Time span_begin, span_end;  // first forward start to last backward end
  Seconds busy;                    // passes inside the span, tensor-parallel traffic included
  Seconds exposed_in_span;         // waits for traffic of the stage between passes
  RunCost work;                    // everything that ran, summed
};

ClassTimeline read_timeline(const SimulationInput& input, const Simulation& simulation,
                            std::int32_t rank_class, std::int32_t step);

}  // namespace stepcast
