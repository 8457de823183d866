// SPDX-License-Identifier: Apache-2.0
// n-1 steps: step t sends slice r-t and receives slice r-1-t (modulo n).
#include "comm/ring_plan.h"

namespace stepcast {

RingPlan ring_all_gather(std::int64_t count, int ranks, int rank) {
  if (ranks == 1) return {};
  RingPlan plan;
  plan.first = slice_of(count, ranks, rank);
  for (int step = 0; step + 1 < ranks; ++step) {
    plan.receives.push_back({.slice = slice_of(count, ranks, (rank - 1 - step + ranks) % ranks),
                             .reduce = false,
                             .forward = step + 2 < ranks,
                             .overwrites = std::nullopt});
  }
  return plan;
}

}  // namespace stepcast
