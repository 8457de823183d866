// SPDX-License-Identifier: Apache-2.0
// How long the traffic of one step occupies every link of the cluster.
#pragma once

#include <vector>

#include "cost/collective_cost.h"
#include "predict/simulation.h"

namespace stepcast {

struct LinkTime;

// By LinkId: how long the link would be full carrying one step's collectives and messages one after
// the other, at the pace that the library reaches on it.
std::vector<LinkTime> link_use(const SimulationInput& input, const CollectiveCosts& collectives);

}  // namespace stepcast
