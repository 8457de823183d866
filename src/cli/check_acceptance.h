// SPDX-License-Identifier: Apache-2.0
// `check` of a file of thresholds: results of nccl-tests and training logs against them.
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"

namespace stepcast {
struct DataFolders;
}  // namespace stepcast

namespace stepcast::cli {

// Whether `check` was given thresholds instead of suites.
bool is_acceptance(const std::vector<std::string>& suites);

struct AcceptanceFlags {
  std::string file;
  std::vector<std::string> results;
  std::string markdown;
  OutputOptions output;
};
int check_acceptance(const AcceptanceFlags& flags, const DataFolders& folders, Output& output);

}  // namespace stepcast::cli
