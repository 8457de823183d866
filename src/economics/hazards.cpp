// SPDX-License-Identifier: Apache-2.0
#include "economics/hazards.h"

#include <cmath>
#include <initializer_list>

#include "economics/node_pool.h"

namespace stepcast {
namespace {

// Takes the time of work that a check has thrown away, and of the checks, out of the rest.
void add_corruption(const Hazards& hazards, WallShares& shares) {
  const double period = hazards.corruption_check.value();
  const double kept = shares.useful + shares.stragglers + shares.reduced;
  if (!(hazards.corruptions.value() > 0) || !(period > 0) || !(kept > 0)) return;
  // How often a period is trained until it passes its check.
  const double tries = std::exp(hazards.corruptions * hazards.corruption_check);
  const double training = tries / kept;  // wall time for each second that is kept
  const double checks = tries * hazards.check_time.value() / period;
  const double restarts = (tries - 1) * hazards.process.restart.value() / period;
  const double all = training + checks + restarts;
  if (!std::isfinite(all)) {
    shares = {.useful = 0, .rework = 1};
    return;
  }
  for (double* part : {&shares.useful, &shares.stragglers, &shares.reduced, &shares.checkpoint,
                       &shares.rework, &shares.restart, &shares.waiting}) {
    *part *= training / all;
  }
  for (double* part : {&shares.useful, &shares.stragglers, &shares.reduced}) {
    shares.rework += *part * (1 - 1 / tries);
    *part /= tries;
  }
  shares.checks = checks / all;
  shares.restart += restarts / all;
}

}  // namespace

WallShares wall_shares(const Hazards& hazards, Seconds interval) {
  WallShares shares = wall_shares(hazards.process, interval);
  const bool elastic = hazards.lost_per_node > 0;
  const double waiting =
      elastic ? 0 : waiting_share(hazards.node_losses, hazards.away, hazards.spare_nodes);
  const double slow = straggler_share(hazards.stragglers, hazards.detection, hazards.slowdown);
  for (double* part : {&shares.useful, &shares.checkpoint, &shares.rework, &shares.restart}) {
    *part *= 1 - waiting;
  }
  shares.waiting = waiting;
  shares.stragglers = shares.useful * slow;
  shares.useful -= shares.stragglers;
  if (elastic) {
    shares.reduced = shares.useful * reduced_share(hazards.node_losses, hazards.away,
                                                   hazards.spare_nodes, hazards.lost_per_node);
    shares.useful -= shares.reduced;
  }
  add_corruption(hazards, shares);
  return shares;
}

}  // namespace stepcast
