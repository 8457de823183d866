// SPDX-License-Identifier: Apache-2.0
// Finds from what was seen of a launch how it ended and why. Causes go before consequences: when a
// rank dies, the others report that they lost it, and mpirun ends them by signals of its own.
#pragma once

#include <optional>

#include "launch/launch_outcome.h"
#include "launch/process_group.h"
#include "launch/rank_watch.h"

namespace stepcast {

struct LaunchEvidence {
  std::optional<StopReason> stopped;  // why the launcher ended the ranks, if it did
  int interrupt = 0;                  // the signal that came to this process
  ProcessExit mpirun;
  int unread = 0;            // errno where not all that the ranks wrote could be read
  bool alone = false;        // in place of mpirun the only rank itself
  bool memory_kill = false;  // the kernel killed for memory while the ranks ran

  bool must_stop() const { return interrupt != 0 || stopped || unread != 0; }
};

LaunchOutcome diagnose(const RankWatch& watch, const LaunchEvidence& evidence);

}  // namespace stepcast
