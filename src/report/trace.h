// SPDX-License-Identifier: Apache-2.0
// The replayed step as a Chrome trace in the shape of PyTorch's profiler (Kineto): opens in
// Perfetto, and tools that read profiler traces read it too (docs/formats/prediction.md, "Trace").
// One process per pipeline stage (its lowest rank), one thread per stream; times in microseconds,
// exact to 1 ps.
#pragma once

#include <vector>

#include "core/text/written.h"
#include "validate/validation.h"

namespace stepcast {

struct Prediction;
struct Scenario;
struct TraceSlice;

// Needs a prediction made with PredictOptions::trace.
Written trace_json(const Scenario& scenario, const Prediction& prediction);

// A step of a real run in the same form (validate/measured_slices.h): passes and collectives.
Written run_trace_json(const Scenario& scenario, const Validation& validation,
                       const std::vector<TraceSlice>& measured);

}  // namespace stepcast
