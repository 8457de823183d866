// SPDX-License-Identifier: Apache-2.0
// How profiles are written: numbers, forms, lines (docs/formats/profile.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "calibrate/fit/fit_error.h"
#include "cost/profile.h"

namespace stepcast {

// Four digits: less than any error of a fit, and the same for every compiler.
double rounded(double value);
std::string microseconds(double seconds);
// Six digits: as many as a duration is known to.
double six_digits(double value);
nlohmann::ordered_json error_json(const FitError& error);

nlohmann::ordered_json form_json(const GemmFit& fit);
nlohmann::ordered_json form_json(const AttentionFit& fit);
nlohmann::ordered_json form_json(const MemoryFit& fit);
nlohmann::ordered_json host_json(const HostFit& host);

// Like dump(2), but a container of scalars that fits a line stays on it; ends with a line feed.
std::string profile_layout(const nlohmann::ordered_json& root);

}  // namespace stepcast
