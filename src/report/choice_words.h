// SPDX-License-Identifier: Apache-2.0
// A sentence about what NCCL chooses differently on a changed cluster.
#pragma once

#include <string>
#include <vector>

#include "predict/traffic_choices.h"

namespace stepcast {

// About the largest message of those for which the choices differ: "NCCL takes 32 channels instead
// of 16 for the all-gather of 436 MB among 16 ranks (dp)". Empty where none differs, and where the
// two are of different traffic.
std::string changed_choice(const std::vector<TrafficChoice>& before,
                           const std::vector<TrafficChoice>& after);

}  // namespace stepcast
