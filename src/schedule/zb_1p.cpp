// SPDX-License-Identifier: Apache-2.0
// ZB-1p (Qi et al. 2024, arXiv 2401.10241): split backwards, ordered by how long they take, within
// the memory of 1F1B.
#include "schedule/zero_bubble.h"

#include "schedule/schedule.h"

namespace stepcast {
namespace {

std::vector<StageOrder> orders(const Pipeline& pipeline, const PassTimes& times) {
  return zero_bubble_orders(pipeline, times, pipeline.stages);
}

}  // namespace

extern const Schedule kZb1p = {.name = "zb-1p",
                               .orders = orders,
                               .splits_backward = true,
                               .bubble = "(p-1)(f+b-w)/(m(f+b+w)+(p-1)(f+b-w))",
                               .in_flight = "min(p, m)",
                               .source = "Qi et al. 2024, section 3.1"};

}  // namespace stepcast
