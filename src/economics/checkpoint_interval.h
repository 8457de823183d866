// SPDX-License-Identifier: Apache-2.0
// How long to train between two checkpoints.
#pragma once

#include "economics/failure_process.h"

namespace stepcast {

// sqrt(2 checkpoint / rate): Young 1974, "A first order approximation to the optimum checkpoint
// interval". Infinite without interruptions.
Seconds young_interval(Seconds checkpoint, PerSecond interruptions);

// Young's with terms of higher order; the mean time between interruptions where a checkpoint takes
// more than twice that (Daly 2006, equation 37).
Seconds daly_interval(Seconds checkpoint, PerSecond interruptions);

// The one of the highest goodput, exactly; not below `shortest` (a step). Infinite without
// interruptions.
Seconds best_interval(const FailureProcess& process, Seconds shortest);

}  // namespace stepcast
