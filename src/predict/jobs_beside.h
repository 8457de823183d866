// SPDX-License-Identifier: Apache-2.0
// Several jobs in one replay: they share the links of a fabric, and each has its own ranks, classes
// and steps (docs/sites.md, "Other jobs").
#pragma once

#include <vector>

#include "predict/beside.h"
#include "predict/placed_job.h"
#include "predict/timeline.h"

namespace stepcast {

struct JointReplay {
  Simulation simulation;                // of the first job, up to its last measured step
  std::vector<ClassTimeline> timeline;  // by class of it: the mean of its measured steps
  std::vector<Seconds> steps;           // of the others, the mean of those beside it
};

// Replays the first job for some steps, beside the others for as long as it takes. `alone`: what a
// step of each takes by itself.
Result<JointReplay> replay_together(const std::vector<PlacedJob*>& jobs,
                                    const std::vector<Seconds>& alone);

// Links that the first job shares with others whose steps take so long.
std::vector<SharedLink> links_of_several(const std::vector<PlacedJob*>& jobs,
                                         const std::vector<Seconds>& steps);

}  // namespace stepcast
