// SPDX-License-Identifier: Apache-2.0
// What the CPU executor runs of what the lowering knows.
#pragma once

#include "core/result.h"
#include "layout/scenario.h"

namespace stepcast {

// fp32 sums in another order: largest relative error of losses and parameters against one rank.
inline constexpr double kNumericsLimit = 1e-5;

// Names the key and the value that it does accept.
Errors check_executable(const Scenario& scenario);

}  // namespace stepcast
