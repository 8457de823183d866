// SPDX-License-Identifier: Apache-2.0
// Training interrupted at random and saved now and then, as a renewal process: every checkpoint and
// every return to one starts it anew. Interruptions come as a Poisson process, also during restarts
// and checkpoints (Daly 2006, "A higher order estimate of the optimum checkpoint interval for
// restart dumps", section 3; docs/economics.md).
#pragma once

#include "core/quantity.h"

namespace stepcast {

using PerSecond = Quantity<Dimension{.time = -1}>;

struct FailureProcess {
  PerSecond failures{};     // lose the work since the last checkpoint
  PerSecond preemptions{};  // announced early enough to save first
  Seconds checkpoint{};     // training stands still for so long
  Seconds restart{};  // from an interruption until training goes on; may be interrupted itself

  PerSecond interruptions() const { return failures + preemptions; }
};

// Shares of wall time by what it goes into; they add up to 1.
struct WallShares {
  double useful = 1;      // steps that count, at full speed
  double stragglers = 0;  // what slow nodes make such steps longer
  double checkpoint = 0;
  double rework = 0;   // lost since a checkpoint, and done again
  double restart = 0;  // detection, new nodes, loading
  double waiting = 0;  // for a node, when no spare is left
  double reduced = 0;  // what fewer replicas make steps longer
  double checks = 0;   // for wrong results
};

// Holds in the long run, with a checkpoint after each `interval` of training. `stragglers`,
// `waiting`, `reduced` and `checks` stay 0: they are no part of this process.
WallShares wall_shares(const FailureProcess& process, Seconds interval);

// The scatter of goodput: over a wall time T its standard deviation is sqrt(result / T). In
// seconds; by the central limit theorem of renewal-reward processes.
Seconds goodput_scatter(const FailureProcess& process, Seconds interval);

}  // namespace stepcast
