// SPDX-License-Identifier: Apache-2.0
// Why the step took as long as it did: from the end of the critical rank's update back to the step
// before, through passes, transfers and the stages that they came from.
#pragma once

#include <vector>

#include "predict/simulation.h"
#include "predict/timeline.h"

namespace stepcast {

struct PathStep;

// Equal names are merged, the longest first; the times add up to the step time.
std::vector<PathStep> find_critical_path(const SimulationInput& input, const Simulation& simulation,
                                         const std::vector<ClassTimeline>& timelines,
                                         std::size_t critical_class);

}  // namespace stepcast
