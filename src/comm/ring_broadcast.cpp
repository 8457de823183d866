// SPDX-License-Identifier: Apache-2.0
// A chain: root, root+1, ..., root-1. Cut into segments all links of it are busy at once.
#include "comm/ring_plan.h"
#include "core/assert.h"

namespace stepcast {

RingPlan ring_broadcast(std::int64_t count, int ranks, int rank, int root) {
  STEPCAST_ASSERT(root >= 0 && root < ranks, "the root is a rank of the group");
  if (ranks == 1) return {};
  const Slice all{0, count};
  RingPlan plan;
  if (rank == root) {
    plan.first = all;
  } else {
    plan.receives.push_back({.slice = all,
                             .reduce = false,
                             .forward = (rank + 1) % ranks != root,
                             .overwrites = std::nullopt});
  }
  return plan;
}

}  // namespace stepcast
