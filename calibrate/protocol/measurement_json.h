// SPDX-License-Identifier: Apache-2.0
// A measurement as JSON, to the last bit:
//   {"median_s", "mean_s", "deviation_s", "halves", "p10_s", "p90_s", "low_s", "high_s", "n",
//   "calls_per_sample",
//    "rejected": {"forced_switch", "waited", "throttled", "outlier"}, "stopped"}
// low_s and high_s are left out when too few samples bound the median.
#pragma once

#include "calibrate/protocol/protocol.h"
#include "core/json.h"
#include "core/json_tree.h"

namespace stepcast {

// "precise", "sample_limit", "budget", "disturbed", "not_yet".
const char* name_of(Stop stop);

Json measurement_json(const Measurement& measurement);
// Errors go to the value's document.
Measurement read_measurement(const JsonValue& value);

}  // namespace stepcast
