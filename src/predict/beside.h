// SPDX-License-Identifier: Apache-2.0
// Tells what a job loses to the other jobs on its fabric (predict/jobs_beside.h).
#pragma once

#include <string>
#include <vector>

#include "core/quantity.h"

namespace stepcast {

// For how much of the time a link that two jobs use would be full with what each sends.
struct SharedLink {
  std::string name;
  double own = 0, others = 0;
};

struct JobsBeside {
  Seconds alone;               // the step without the others; 0: there are none
  std::vector<Seconds> steps;  // of the others, while this one runs
  std::vector<Seconds> steps_alone;
  std::vector<SharedLink> links;  // the fullest first
};

}  // namespace stepcast
