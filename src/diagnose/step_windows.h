// SPDX-License-Identifier: Apache-2.0
// Which stretch of a rank's timeline is a step. A step lasts from the end of the kernels of the one
// before to the end of its own, as in a forecast; a kernel belongs to the step that launched it.
#pragma once

#include "diagnose/rank_timeline.h"

namespace stepcast {

// Fills in the steps of a timeline whose activities are known. `process` is the trace's.
void add_steps(const Trace& trace, std::int64_t process, Timeline& timeline);

// The step whose length is the median, and the lengths of all that count. The first of several is
// left out: the profiler starts inside it.
const Window& median_step(const Timeline& timeline);

}  // namespace stepcast
