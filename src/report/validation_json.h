// SPDX-License-Identifier: Apache-2.0
// A forecast beside its run as JSON (format 1; docs/formats/validation.md).
#pragma once

#include <string>

#include "validate/validation.h"

namespace stepcast {

std::string validation_json(const Scenario& scenario, const Validation& validation);
// The forecast alone, for a layout that does not fit and so did not run.
std::string validation_json(const Scenario& scenario, const Prediction& too_large);

}  // namespace stepcast
