// SPDX-License-Identifier: Apache-2.0
#include "predict/attribution.h"

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

// What spans several axes counts as the one that reaches furthest in the usual order of ranks.
Seconds& exposed_part(TimeParts& parts, AxisGroup group) {
  if (group == AxisGroup::kPipeline || group == AxisGroup::kEmbedding) return parts.exposed_pp;
  if (group.crosses_stages()) return parts.other;
  if (group.spans(Axis::kDp) || group.spans(Axis::kEdp)) return parts.exposed_dp;
  if (group.spans(Axis::kEp)) return parts.exposed_ep;
  if (group.spans(Axis::kCp)) return parts.exposed_cp;
  return parts.exposed_tp;
}

}  // namespace stepcast
