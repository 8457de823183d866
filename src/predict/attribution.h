// SPDX-License-Identifier: Apache-2.0
// Readers of forecast and of measured timelines share this: the part of a step to which an instant
// of waiting belongs (docs/terminology.md).
#pragma once

#include <cstdint>

#include "core/quantity.h"

namespace stepcast {

class AxisGroup;
struct Instruction;
struct TimeParts;
struct TraceSlice;

// Traffic of a group that belongs to the pass rather than to the pipeline.
bool inside_a_stage(AxisGroup group);

// First forward to last backward.
bool in_span(const Instruction& what);

// The instruction as a slice of a timeline.
TraceSlice slice_of(const Instruction& what, std::int32_t rank_class, Seconds start,
                    Seconds duration);

// Exposed traffic of the group is counted in this part.
Seconds& exposed_part(TimeParts& parts, AxisGroup group);

}  // namespace stepcast
