// SPDX-License-Identifier: Apache-2.0
// Timelines of the last step for traces and pictures: slices per rank class and stream, memory over
// time.
#pragma once

#include "predict/simulation.h"

namespace stepcast {

struct Prediction;

// Times are relative to the start of the step on the rank class `origin`. Without `kernels`, the
// compute stream has whole passes alone, which are a tenth of it.
void record_trace(const SimulationInput& input, const Simulation& simulation, sim::Time origin,
                  bool kernels, Prediction& prediction);

}  // namespace stepcast
