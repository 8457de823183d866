// SPDX-License-Identifier: Apache-2.0
// ZB-2p (Qi et al. 2024, arXiv 2401.10241): split backwards, ordered by how long they take, within
// twice the memory of 1F1B. The gradient norm is checked after the step, so that no stage waits.
#include "schedule/zero_bubble.h"

#include "schedule/schedule.h"

namespace stepcast {
namespace {

std::vector<StageOrder> orders(const Pipeline& pipeline, const PassTimes& times) {
  return zero_bubble_orders(pipeline, times, 2 * pipeline.stages);
}

}  // namespace

extern const Schedule kZb2p = {.name = "zb-2p",
                               .orders = orders,
                               .splits_backward = true,
                               .validates_after_step = true,
                               .bubble = "max(0, (p-1)(f+b-2w)) of the step",
                               .in_flight = "min(2p-1, m)",
                               .source = "Qi et al. 2024, section 3.1"};

}  // namespace stepcast
