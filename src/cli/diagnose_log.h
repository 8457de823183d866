// SPDX-License-Identifier: Apache-2.0
// `diagnose --log`: a training log beside the forecast of its scenario. A log tells step times
// alone, so the answer says how far they are from the forecast and where to look first.
#pragma once

#include <string>

#include "cli/output.h"

namespace stepcast {

struct DataFolders;
struct Scenario;
}  // namespace stepcast

namespace stepcast::cli {

// Returns the exit code.
int diagnose_log(const std::string& log, const Scenario& scenario, const DataFolders& folders,
                 const OutputOptions& options, const std::string& markdown, Output& output);

}  // namespace stepcast::cli
