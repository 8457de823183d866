// SPDX-License-Identifier: Apache-2.0
// Memory over the step, by part and class of ranks (docs/formats/prediction.md, "Memory timeline").
#pragma once

#include <string>

#include "core/text/written.h"

namespace stepcast {

struct Prediction;

// Both need a prediction made with PredictOptions::trace.
Written memory_timeline_csv(const Prediction& prediction);
Written memory_timeline_json(const Prediction& prediction);

}  // namespace stepcast
