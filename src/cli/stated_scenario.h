// SPDX-License-Identifier: Apache-2.0
// The scenario that a command is about, read from its file and its flags.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "layout/scenario.h"

namespace stepcast {
struct DataFolders;
}  // namespace stepcast

namespace stepcast::cli {

struct OutputOptions;
struct ScenarioFlags;

Result<Scenario> scenario_from_flags(const ScenarioFlags& flags, const DataFolders& folders);

// Holds the scenario beside the text of its file with all flags laid over it.
struct StatedScenario {
  Scenario scenario;
  std::string text;
};
Result<StatedScenario> stated_scenario(const ScenarioFlags& flags, const DataFolders& folders);

// Accepts a scenario that need not be forecast, too (read_legal_scenario).
Result<StatedScenario> stated_legal_scenario(const ScenarioFlags& flags,
                                             const DataFolders& folders);

// Tells how names were read that are none of the shipped ones.
void note_readings(const OutputOptions& output, const std::vector<const Scenario*>& scenarios);

}  // namespace stepcast::cli
