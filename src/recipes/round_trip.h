// SPDX-License-Identifier: Apache-2.0
// Finds what a launch file cannot say. The file is written, read back as any other, and set beside
// the scenario: every key that comes back otherwise is a remark, so that none is dropped silently.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "recipes/imported_scenario.h"

namespace stepcast {

struct DataFolders;
struct Scenario;

struct RoundTrip {
  std::string target;  // "Megatron-LM", for errors
  std::function<Result<std::string>(const std::vector<Setting>& remarks)> write;
  std::function<ImportedScenario(const ImportInput&)> read;
  // Keys that the training program says, not the file: always remarks where they differ from
  // false and none.
  std::vector<std::string> left_to_program;
};

struct TripResult {
  std::string text;              // with its remarks
  std::vector<Setting> remarks;  // what it has no word for
};

// `stated` is the scenario as its file says it (JSON). Errors: a key that decides what is trained
// or on how many ranks, which the file has no word for.
Result<TripResult> write_and_read_back(const RoundTrip& trip, const Scenario& scenario,
                                       const std::string& stated, const DataFolders& folders);

}  // namespace stepcast
