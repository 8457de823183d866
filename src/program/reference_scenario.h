// SPDX-License-Identifier: Apache-2.0
// The numerics of a run are held against this scenario.
#pragma once

#include "core/json_fwd.h"

namespace stepcast {

// Asks for one model and batch again, in fp32 on one rank in the simplest layout. `scenario` and
// the result are JSON of scenario files.
SortedJson reference_scenario(SortedJson scenario);

}  // namespace stepcast
