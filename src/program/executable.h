// SPDX-License-Identifier: Apache-2.0
// What the CPU executor runs of what the lowering knows.
#pragma once

#include "core/result.h"
#include "layout/scenario.h"

namespace stepcast {

// Names the key and the value that it does accept.
Errors check_executable(const Scenario& scenario);

}  // namespace stepcast
