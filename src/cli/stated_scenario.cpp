// SPDX-License-Identifier: Apache-2.0
#include "cli/stated_scenario.h"

#include <set>
#include <utility>

#include "cli/scenario_flags.h"
#include "core/gathered_errors.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "layout/read_scenario.h"

namespace stepcast::cli {
namespace {

Result<StatedScenario> read_stated(const ScenarioFlags& flags, const DataFolders& folders,
                                   Result<Scenario> (*reader)(JsonDocument&, const DataFolders&)) {
  auto stated = stated_text(flags, folders);
  if (!stated) return failure(stated.error());
  Errors& errors = stated->errors;
  const auto document = JsonDocument::from(SortedJson::parse(stated->text), flags.file);
  auto read = reader(*document, folders);
  if (!read) append(errors, read.error());
  if (!errors.empty()) return failure(name_flags(std::move(errors), flags));
  return StatedScenario{std::move(*read), std::move(stated->text)};
}

}  // namespace

Result<StatedScenario> stated_scenario(const ScenarioFlags& flags, const DataFolders& folders) {
  return read_stated(flags, folders, read_scenario);
}

Result<StatedScenario> stated_legal_scenario(const ScenarioFlags& flags,
                                             const DataFolders& folders) {
  return read_stated(flags, folders, read_legal_scenario);
}

void note_readings(const OutputOptions& output, const std::vector<const Scenario*>& scenarios) {
  std::set<std::string> told = {""};
  for (const Scenario* scenario : scenarios) {
    for (const std::string& reading : {scenario->model.reading, scenario->cluster.spec.reading}) {
      if (told.insert(reading).second) note(output, "note: " + reading);
    }
  }
}

Result<Scenario> scenario_from_flags(const ScenarioFlags& flags, const DataFolders& folders) {
  auto stated = stated_scenario(flags, folders);
  if (!stated) return failure(stated.error());
  return std::move(stated->scenario);
}

}  // namespace stepcast::cli
