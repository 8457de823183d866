// SPDX-License-Identifier: Apache-2.0
// V-Min (Qi et al. 2024, arXiv 2405.15362): a third of 1F1B's activations, the least that a V can
// hold. Each stage runs a pass in the slot behind its neighbour's, so that every hop is waited for.
#include "schedule/building_block.h"

#include "schedule/schedule.h"
#include "schedule/schedule_kind.h"

namespace stepcast {
namespace {

std::vector<StageOrder> orders(const Pipeline& pipeline, const PassTimes&) {
  const std::int64_t p = pipeline.stages;
  const std::int64_t pause = p % 3 == 0 ? 2 : 0;  // without it two passes would share a slot
  std::vector<BlockSlots> block;
  for (std::int64_t i = 0; i < p; ++i) {
    block.push_back({i, 2 * p - i - 1, 2 * p + pause + i, 4 * p + pause - i - 1});
  }
  return split_block_orders(pipeline, block);
}

}  // namespace

extern const Schedule kVMin = {.name = "v-min",
                               .orders = orders,
                               .placement = Placement::kFolded,
                               .chunks = 2,
                               .splits_backward = true,
                               .bubble = "(4p-5)/(6m+4p-5) where f = b = w, p%3 > 0",
                               .in_flight = "about p/3 + 1",
                               .source = "Qi et al. 2024, arXiv 2405.15362"};

}  // namespace stepcast
