// SPDX-License-Identifier: Apache-2.0
// A forecast as JSON (format 1; docs/formats/prediction.md).
#pragma once

#include <string>

#include "core/json_fwd.h"
#include "core/text/written.h"

namespace stepcast {

struct Prediction;
struct Scenario;
struct TimeParts;

// Whatever is not applicable or not finite is left out.
Json prediction_object(const Scenario& scenario, const Prediction& prediction);
Written prediction_json(const Scenario& scenario, const Prediction& prediction);

// Sets `layout`, as a scenario states it, with every default, and `framework` beside it.
void put_layout(Json& out, const Scenario& scenario);
Json time_object(const TimeParts& parts);  // its `time_s`

// Sets `object[key]` unless the value is not finite, which JSON cannot say.
void put(Json& object, const char* key, double value);

}  // namespace stepcast
