// SPDX-License-Identifier: Apache-2.0
// How profiles are written: numbers and lines (docs/formats/profile.md). Forms are
// cost/profile_forms.h.
#pragma once

#include <string>

#include "calibrate/fit/fit_error.h"
#include "core/json_fwd.h"
#include "cost/profile_forms.h"

namespace stepcast {

// Six digits: as many as a duration is known to.
double six_digits(double value);
Json error_json(const FitError& error);

// Like dump(2), but a container of scalars that fits a line stays on it; ends with a line feed.
std::string profile_layout(const Json& root);

}  // namespace stepcast
