// SPDX-License-Identifier: Apache-2.0
#include "predict/attribution.h"

namespace stepcast {

bool inside_a_stage(GroupKind group) {
  return group == GroupKind::kData || group == GroupKind::kTensor || group == GroupKind::kContext;
}

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
          !what.is_run(),
          what.bytes()};
}

Seconds& exposed_part(TimeParts& parts, GroupKind group) {
  switch (group) {
    case GroupKind::kTensor:
      return parts.exposed_tp;
    case GroupKind::kContext:
      return parts.exposed_cp;
    case GroupKind::kData:
      return parts.exposed_dp;
    case GroupKind::kEmbedding:
    case GroupKind::kPipeline:
      return parts.exposed_pp;
    case GroupKind::kModel:
    case GroupKind::kWorld:
      break;
  }
  return parts.other;
}

}  // namespace stepcast
