// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule.h"

#include <algorithm>

#include "core/assert.h"
#include "core/work_limits.h"

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

std::int64_t stage_of_chunk(const Pipeline& pipeline, std::int64_t chunk,
                            std::int64_t micro_batch) {
  const std::int64_t stages = pipeline.stages;
  switch (pipeline.placement) {
    case Placement::kStraight:
      break;
    case Placement::kFolded:
      return chunk >= stages ? 2 * stages - 1 - chunk : chunk;
    case Placement::kMirrored:
      return 2 * micro_batch < pipeline.micro_batches ? chunk : stages - 1 - chunk;
  }
  return chunk % stages;
}

std::int64_t chunk_of(const Pipeline& pipeline, std::int64_t stage, std::int64_t local_chunk) {
  const std::int64_t stages = pipeline.stages;
  switch (pipeline.placement) {
    case Placement::kStraight:
      break;
    case Placement::kFolded:
      return local_chunk == 1 ? 2 * stages - 1 - stage : stage;
    case Placement::kMirrored: {
      const std::int64_t earlier = std::min(stage, stages - 1 - stage);
      return local_chunk == 0 ? earlier : stages - 1 - earlier;
    }
  }
  return local_chunk * stages + stage;
}

std::int64_t local_chunk_of(const Pipeline& pipeline, std::int64_t chunk) {
  if (pipeline.placement != Placement::kMirrored) return chunk / pipeline.stages;
  return 2 * chunk < pipeline.stages ? 0 : 1;
}

MicroBatches micro_batches_of(const Pipeline& pipeline, std::int64_t stage,
                              std::int64_t local_chunk) {
  if (pipeline.placement != Placement::kMirrored) return {0, pipeline.micro_batches};
  const std::int64_t half = pipeline.micro_batches / 2;
  const bool down = chunk_of(pipeline, stage, local_chunk) == stage;
  return down ? MicroBatches{0, half} : MicroBatches{half, pipeline.micro_batches};
}

bool goes_up(const Pipeline& pipeline, const Slot& slot) {
  if (pipeline.placement == Placement::kMirrored) {
    return 2 * slot.micro_batch >= pipeline.micro_batches;
  }
  return pipeline.placement == Placement::kFolded && slot.chunk == 1;
}

std::vector<StageOrder> make_orders(ScheduleKind kind, const Pipeline& pipeline,
                                    const PassTimes& times) {
  const Schedule& schedule = rules_of(kind);
  STEPCAST_ASSERT(schedule.is_made(), "a schedule with an order of its own");
  if (schedule.orders != nullptr) return schedule.orders(pipeline, times);
  std::vector<StageOrder> orders;
  for (std::int64_t stage = 0; stage < pipeline.stages; ++stage) {
    end_if_stopped();
    orders.push_back(schedule.order(pipeline, stage));
  }
  return orders;
}

}  // namespace stepcast
