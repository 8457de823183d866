// SPDX-License-Identifier: Apache-2.0
// V-Half (Qi et al. 2024, arXiv 2405.15362): half the activations of 1F1B. Passes of a chunk follow
// each other two slots apart from stage to stage, but one slot apart on the way back up.
#include "schedule/building_block.h"

#include "schedule/schedule.h"
#include "schedule/schedule_kind.h"

namespace stepcast {
namespace {

std::vector<StageOrder> orders(const Pipeline& pipeline, const PassTimes&) {
  const std::int64_t p = pipeline.stages;
  const std::int64_t pause = p % 2 == 0 ? 3 : 0;  // without it two passes would share a slot
  std::vector<BlockSlots> block;
  for (std::int64_t i = 0; i < p; ++i) {
    block.push_back({2 * i, 3 * p - i - 2, 3 * p + pause + 2 * i - 1, 6 * p + pause - i - 2});
  }
  return split_block_orders(pipeline, block);
}

}  // namespace

extern const Schedule kVHalf = {.name = "v-half",
                                .orders = orders,
                                .placement = Placement::kFolded,
                                .chunks = 2,
                                .splits_backward = true,
                                .bubble = "(3p-7)/(6m+3p-7) where f = b = w, p even",
                                .in_flight = "floor(p/2) + 1",
                                .source = "Qi et al. 2024, arXiv 2405.15362"};

}  // namespace stepcast
