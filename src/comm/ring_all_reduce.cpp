// SPDX-License-Identifier: Apache-2.0
// n-1 steps of reduce-scatter, n-1 of all-gather, without a break between them: step t sends slice
// r-1-t and receives slice r-2-t (modulo n), so that step n-2 completes the sum of slice r. Slice s
// is summed in the order s+1, s+2, ..., s.
#include "comm/ring_plan.h"

namespace stepcast {

RingPlan ring_all_reduce(std::int64_t count, int ranks, int rank) {
  if (ranks == 1) return {};
  const auto slice = [&](int index) { return slice_of(count, ranks, (index + 2 * ranks) % ranks); };
  const int reducing = ranks - 1;
  const int steps = 2 * reducing;
  RingPlan plan;
  plan.first = slice(rank - 1);
  for (int step = 0; step < steps; ++step) {
    RingPlan::Receive receive{.slice = slice(rank - 2 - step),
                              .reduce = step < reducing,
                              .forward = step + 1 < steps,
                              .overwrites = std::nullopt};
    // Slice r-2-step was sent, as a part of the sum, where r-1-t = r-2-step modulo n.
    if (!receive.reduce) receive.overwrites = step + 1 - ranks;
    plan.receives.push_back(receive);
  }
  return plan;
}

}  // namespace stepcast
