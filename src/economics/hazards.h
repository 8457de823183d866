// SPDX-License-Identifier: Apache-2.0
// Everything that keeps a run from training at full speed, as rates and times of the whole job.
#pragma once

#include <cstdint>

#include "economics/failure_process.h"

namespace stepcast {

struct Hazards {
  FailureProcess process;
  PerSecond node_losses;  // the part of its interruptions that takes a node away
  Seconds away;           // until a lost node or its replacement is back
  std::int64_t spare_nodes = 0;
  // The part of the job's throughput that is lost with each node beyond the spares while it is
  // away; 0: the job waits until it is back.
  double lost_per_node = 0;
  PerSecond stragglers;      // a node becomes slow
  Seconds detection;         // and is replaced after so long
  double slowdown = 0;       // 0.3: meanwhile a step takes 1.3 times as long
  PerSecond corruptions;     // of results, found by the next check
  Seconds corruption_check;  // of training between two checks
  Seconds check_time;        // training stands still for so long
};

// Holds in the long run, with a checkpoint after each `interval` of training: the failure process
// while the job is whole, Erlang's loss formula for the waits between, or a number of lost nodes
// that is Poisson where the job goes on without them; stragglers and corruption independent of all
// that. The next check finds a corruption, which has what was trained since the last one done again
// and a restart: a period P between checks of time V is good with probability e^-cP, so one takes
// e^cP (P + V) + (e^cP - 1) R on average.
WallShares wall_shares(const Hazards& hazards, Seconds interval);

}  // namespace stepcast
