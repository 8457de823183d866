// SPDX-License-Identifier: Apache-2.0
// 1F1B-V (Qi et al. 2024, arXiv 2405.15362): backwards in one pass, and three quarters of 1F1B's
// activations where there are many stages. A backward takes two slots, and after three of them in a
// row there is a pause for a forward, so that no two passes share a slot.
#include "schedule/building_block.h"

#include "schedule/schedule.h"
#include "schedule/schedule_kind.h"

namespace stepcast {
namespace {

std::vector<StageOrder> orders(const Pipeline& pipeline, const PassTimes&) {
  const std::int64_t p = pipeline.stages;
  std::vector<BlockSlots> block(static_cast<std::size_t>(p));
  std::int64_t slot = 0;
  const auto at = [&](std::int64_t stage) -> BlockSlots& {
    return block[static_cast<std::size_t>(stage)];
  };
  for (std::int64_t i = 0; i < p; ++i) at(i)[0] = slot++;
  for (std::int64_t i = 0; i < p; ++i) at(p - 1 - i)[1] = slot++;
  if (p % 3 == 0) slot += 3;
  std::int64_t in_a_row = (3 - (p + 2) % 3) % 3;
  const auto next_backward = [&] {
    const std::int64_t now = slot;
    slot += 2;
    if (++in_a_row == 3) in_a_row = 0, slot += 3;
    return now;
  };
  for (std::int64_t i = 0; i < p; ++i) at(i)[2] = next_backward();
  for (std::int64_t i = 0; i < p; ++i) at(p - 1 - i)[3] = next_backward();
  return whole_block_orders(pipeline, block);
}

}  // namespace

extern const Schedule kOneForwardOneBackwardV = {.name = "1f1b-v",
                                                 .orders = orders,
                                                 .placement = Placement::kFolded,
                                                 .chunks = 2,
                                                 .bubble = "no closed form",
                                                 .in_flight = "about 3p/4",
                                                 .source = "Qi et al. 2024, arXiv 2405.15362"};

}  // namespace stepcast
