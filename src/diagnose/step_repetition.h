// SPDX-License-Identifier: Apache-2.0
// Steps of a trace that has no marks for them: training does the same again and again, so a step is
// the shortest row of kernels that the busiest stream of a device repeats.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnose/rank_timeline.h"

namespace stepcast {

// `device`: into Trace::devices. Whole steps alone, numbered from 0; none where fewer than two
// stand in the trace, where the row has fewer than `least_kernels`, as a layer's has, or where
// kernels of some weight occur less often than it, as an optimizer's do beside micro-batches of one
// step. A step ends as its last kernel on that stream
// does, and is cut from the next where the stream stands still for longest.
std::vector<Window> repeated_steps(const Trace& trace, std::int32_t device,
                                   std::int64_t least_kernels);

}  // namespace stepcast
