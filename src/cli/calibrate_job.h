// SPDX-License-Identifier: Apache-2.0
// Calibration on behalf of another command: measures on this machine what the forecasts of some
// scenarios need.
#pragma once

#include <string>
#include <vector>

#include "cli/session.h"

namespace stepcast::cli {

// Each scenario is the text of a scenario file. Writes the profile to `profile_path` and returns
// its path.
Result<std::string> calibrate_for(const std::vector<std::string>& scenarios, const DataRoot& data,
                                  const OutputOptions& output, const std::string& profile_path);

}  // namespace stepcast::cli
