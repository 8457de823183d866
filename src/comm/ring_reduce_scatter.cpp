// SPDX-License-Identifier: Apache-2.0
// n-1 steps: step t sends slice r-1-t and receives slice r-2-t (modulo n), the last one slice r.
#include "comm/ring_plan.h"

namespace stepcast {

RingPlan ring_reduce_scatter(std::int64_t count, int ranks, int rank) {
  if (ranks == 1) return {};
  RingPlan plan = ring_all_reduce(count, ranks, rank);
  plan.receives.resize(static_cast<std::size_t>(ranks - 1));
  plan.receives.back().forward = false;
  return plan;
}

}  // namespace stepcast
