// SPDX-License-Identifier: Apache-2.0
// `calibrate --import`: a profile of what others measured, without measuring anything.
#pragma once

#include <string>
#include <vector>

#include "cli/session.h"

namespace stepcast::cli {

struct ScenarioFlags;

// Reads `files` as measurements on the devices of --cluster, which is all of `flags` that counts,
// and writes the profile to output.file. Returns the exit code.
int import_profile(const std::vector<std::string>& files, const ScenarioFlags& flags,
                   const DataFolders& folders, const OutputOptions& output);

}  // namespace stepcast::cli
