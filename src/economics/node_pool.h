// SPDX-License-Identifier: Apache-2.0
// Spare nodes and slow ones. A job that needs all its nodes waits when more are lost than there are
// spares, until one is back.
#pragma once

#include <cstdint>

#include "economics/failure_process.h"

namespace stepcast {

// Share of time in which the job waits: Erlang's loss formula for spares + 1 servers, since nodes
// are lost only while the job is whole. Exact for any distribution of the time that a node is away
// (Erlang's formula is insensitive to it). `losses` is the rate at which nodes are lost while the
// job is whole.
double waiting_share(PerSecond losses, Seconds away, std::int64_t spares);

// Share of training time that missing nodes cost a job that goes on without them, each beyond the
// spares with `lost_per_node` of its throughput. The number of nodes away is Poisson with mean
// losses x away for any distribution of the time that a node is away (an M/G/infinity queue).
double reduced_share(PerSecond losses, Seconds away, std::int64_t spares, double lost_per_node);

// The fewest spares with which it waits for at most `share` of the time.
std::int64_t spares_for(PerSecond losses, Seconds away, double share);

// Share of training time that slow nodes cost: the part of time in which there is one (Poisson
// arrivals, each lasting `detection`) at 1 + slowdown times the step time.
double straggler_share(PerSecond arrivals, Seconds detection, double slowdown);

}  // namespace stepcast
