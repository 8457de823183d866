// SPDX-License-Identifier: Apache-2.0
// Says in words what tells two forecasts apart.
#pragma once

#include <string>

#include "report/breakdown.h"

namespace stepcast {

struct Scenario;

// "exposed data parallel (network)": a part with the wire that carries it, as groups of this layout
// lie in the cluster.
std::string part_text(const Scenario& scenario, const TimePart& part);

// "bubble +3.1 %, compute -1.2 %": the parts in which `one` (of `scenario`) differs from `other`,
// largest first, in the time of the mean rank, as shares of the other's step.
std::string difference_text(const Scenario& scenario, const Prediction& one,
                            const Prediction& other);

}  // namespace stepcast
