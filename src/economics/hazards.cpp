// SPDX-License-Identifier: Apache-2.0
#include "economics/hazards.h"

#include "economics/node_pool.h"

#include <initializer_list>

namespace stepcast {

WallShares wall_shares(const Hazards& hazards, Seconds interval) {
  WallShares shares = wall_shares(hazards.process, interval);
  const double waiting = waiting_share(hazards.node_losses, hazards.away, hazards.spare_nodes);
  const double slow = straggler_share(hazards.stragglers, hazards.detection, hazards.slowdown);
  for (double* part : {&shares.useful, &shares.checkpoint, &shares.rework, &shares.restart}) {
    *part *= 1 - waiting;
  }
  shares.waiting = waiting;
  shares.stragglers = shares.useful * slow;
  shares.useful -= shares.stragglers;
  return shares;
}

}  // namespace stepcast
