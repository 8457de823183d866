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
  PerSecond stragglers;  // a node becomes slow
  Seconds detection;     // and is replaced after so long
  double slowdown = 0;   // 0.3: meanwhile a step takes 1.3 times as long
};

// In the long run, with a checkpoint after each `interval` of training: the failure process while
// the job is whole, Erlang's loss formula for the waits between, stragglers independent of both.
WallShares wall_shares(const Hazards& hazards, Seconds interval);

}  // namespace stepcast
