// SPDX-License-Identifier: Apache-2.0
// A profile of imported measurements. What was not imported stays as the device's shipped profile,
// or its data sheet, has it.
#pragma once

#include <string>

#include "calibrate/fit/shipped.h"
#include "calibrate/import/imported.h"

namespace stepcast {

// `base` is of the same device. Measurements of one shape become one sample, their median; forms
// are fitted as those of the shipped profiles are.
Result<ShippedProfile> make_imported_profile(const Imported& imported, const ClusterSpec& cluster,
                                             Profile base, const std::string& name);

}  // namespace stepcast
