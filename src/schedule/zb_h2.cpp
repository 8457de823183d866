// SPDX-License-Identifier: Apache-2.0
// ZB-H2 (Qi et al. 2024, arXiv 2401.10241, section 2.3): the order of ZB-2p for passes that all
// take the same, whatever they take. It leaves no bubble where they do.
#include "schedule/zero_bubble.h"

#include "schedule/schedule.h"

namespace stepcast {
namespace {

std::vector<StageOrder> orders(const Pipeline& pipeline, const PassTimes&) {
  return zero_bubble_orders(pipeline, {}, 2 * pipeline.stages);
}

}  // namespace

extern const Schedule kZbH2 = {.name = "zb-h2",
                               .orders = orders,
                               .splits_backward = true,
                               .validates_after_step = true,
                               .bubble = "max(0, (p-1)(f+b-2w)) of the step",
                               .in_flight = "min(2p-1, m)",
                               .source = "Qi et al. 2024, section 2.3"};

}  // namespace stepcast
