// SPDX-License-Identifier: Apache-2.0
#include "predict/attribution.h"

#include "layout/axis_group.h"
#include "operation/phase.h"
#include "predict/prediction.h"
#include "predict/time_parts.h"
#include "program/instruction.h"
#include "schedule/pass.h"

namespace stepcast {

bool inside_a_stage(AxisGroup group) { return !group.crosses_stages(); }

bool in_span(const Instruction& what) { return what.is_run() && what.phase() != Phase::kOptimizer; }

TraceSlice slice_of(const Instruction& what, std::int32_t rank_class, Seconds start,
                    Seconds duration) {
  constexpr std::int32_t kNone = -1;
  const Slot* slot = what.slot();
  return {rank_class,
          what.stream,
          what.name,
          start,
          duration,
          what.phase(),
          slot != nullptr ? slot->micro_batch : kNone,
          slot != nullptr ? slot->chunk : kNone,
          what.is<CollectiveCall>() || what.transfer() != nullptr,
          what.bytes()};
}

Seconds& exposed_part(TimeParts& parts, AxisGroup group) {
  const std::optional<TrafficKind> traffic = traffic_of(group);
  return traffic ? parts.*exposed_by(*traffic) : parts.other;
}

}  // namespace stepcast
