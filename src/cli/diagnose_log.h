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

struct LogFiles {
  std::string log;
  std::string before;    // the last run, a log or a suite; empty: none
  std::string markdown;  // to be written; empty: none
};

// Returns the exit code.
int diagnose_log(const LogFiles& files, const Scenario& scenario, const DataFolders& folders,
                 const OutputOptions& options, Output& output);

}  // namespace stepcast::cli
