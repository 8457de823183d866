// SPDX-License-Identifier: Apache-2.0
// Which stretch of a rank's timeline is a step. A step lasts from the end of the kernels of the one
// before to the end of its own, as in a forecast; a kernel belongs to the step that launched it.
#pragma once

#include "diagnose/rank_timeline.h"

namespace stepcast {

struct StepRules {
  bool as_one_step = false;        // all of the trace
  std::int64_t least_kernels = 1;  // of a step
};

// Fills in the steps of a timeline whose activities are known, of a device of the trace. All of it
// is one step if that is asked for, or nothing tells its steps.
void add_steps(const Trace& trace, std::int32_t device, const StepRules& rules, Timeline& timeline);

// The first of the steps that count: the profiler starts inside the first of several that it marks.
std::size_t first_counted(const Timeline& timeline);
// The one of them whose length is the median.
const Window& median_step(const Timeline& timeline);

}  // namespace stepcast
