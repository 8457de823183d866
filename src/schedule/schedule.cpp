// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule.h"

#include "core/assert.h"

namespace stepcast {

const char* name_of(Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return "forward";
    case Pass::kBackward:
      return "backward";
    case Pass::kInputGradient:
      return "input gradient";
    case Pass::kWeightGradient:
      return "weight gradient";
  }
  return "";
}

std::int64_t stage_of_chunk(const Pipeline& pipeline, std::int64_t chunk) {
  const bool comes_back = pipeline.placement == Placement::kFolded && chunk >= pipeline.stages;
  return comes_back ? 2 * pipeline.stages - 1 - chunk : chunk % pipeline.stages;
}

std::int64_t chunk_of(const Pipeline& pipeline, std::int64_t stage, std::int64_t local_chunk) {
  const bool comes_back = pipeline.placement == Placement::kFolded && local_chunk == 1;
  return comes_back ? 2 * pipeline.stages - 1 - stage : local_chunk * pipeline.stages + stage;
}

std::vector<StageOrder> make_orders(ScheduleKind kind, const Pipeline& pipeline,
                                    const PassTimes& times) {
  const Schedule& schedule = rules_of(kind);
  STEPCAST_ASSERT(schedule.is_supported(), "a schedule with an order of its own");
  if (schedule.orders != nullptr) return schedule.orders(pipeline, times);
  std::vector<StageOrder> orders;
  for (std::int64_t stage = 0; stage < pipeline.stages; ++stage) {
    orders.push_back(schedule.order(pipeline, stage));
  }
  return orders;
}

}  // namespace stepcast
