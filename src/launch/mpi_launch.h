// SPDX-License-Identifier: Apache-2.0
// Runs a program in several ranks under mpirun and watches them until they end or have to be ended.
// Results travel in files that the ranks write, about which this layer knows nothing.
#pragma once

#include "core/result.h"
#include "launch/launch_outcome.h"
#include "launch/mpi_command.h"
#include "launch/rank_watch.h"

namespace stepcast {

struct RankLaunch {
  RankProgram program;
  LaunchLimits limits;
};

// Every report of a rank, on the calling thread, while the ranks run.
using LaunchProgress = RankWatch::Progress;

// An error is a launch that cannot be tried: no mpirun, no program, a bad STEPCAST_MPIRUN_ARGS.
// Whatever goes wrong afterwards is an outcome. On return no process of the launch is left on this
// machine, also when `progress` throws; several launches may run at once.
Result<LaunchOutcome> launch_ranks(const RankLaunch& launch, const LaunchProgress& progress = {});

}  // namespace stepcast
