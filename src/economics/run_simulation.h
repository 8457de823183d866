// SPDX-License-Identifier: Apache-2.0
// The process behind wall_shares(), drawn event by event: what the closed forms are checked
// against.
#pragma once

#include "economics/hazards.h"

namespace stepcast {

struct SimulatedRun {
  WallShares shares;
  std::int64_t interruptions = 0;
};

// The run ends with the first renewal after `horizon`, or earlier where that would take more draws
// than anybody waits for. Equal seeds give equal runs.
SimulatedRun simulate_run(const Hazards& hazards, Seconds interval, Seconds horizon,
                          std::uint64_t seed);

}  // namespace stepcast
