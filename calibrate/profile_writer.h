// SPDX-License-Identifier: Apache-2.0
// Profiles as files of format 1 (docs/formats/profile.md). Same profile, same bytes.
#pragma once

#include <string>

#include "calibrate/fit/shipped.h"

namespace stepcast {

std::string profile_text(const ShippedProfile& shipped);

}  // namespace stepcast
