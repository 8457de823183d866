// SPDX-License-Identifier: Apache-2.0
// A forecast beside its run as JSON (format 1; docs/formats/validation.md).
#pragma once

#include <string>

#include "core/text/written.h"
#include "validate/validation.h"

namespace stepcast {

struct Prediction;
struct Scenario;

Written validation_json(const Scenario& scenario, const Validation& validation);
// The forecast alone, for a layout that does not fit and so did not run.
Written validation_json(const Scenario& scenario, const Prediction& too_large);

}  // namespace stepcast
