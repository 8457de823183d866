// SPDX-License-Identifier: Apache-2.0
// A scenario that is made of another tool's file, or of its log: settings, flags laid over them,
// and the cluster that no such file names.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/session.h"
#include "core/json_tree.h"
#include "recipes/imported_scenario.h"

namespace stepcast::cli {

struct ScenarioFlags;

struct ImportSource {
  std::string format;  // of the text; empty: there is none, and what is stated beside it is all
  ImportInput input;
  // Adds what else is known to the settings that the text has; may be none.
  std::function<void(ImportedScenario&)> complete = {};
  // Sequences of a step as a run printed them: they hold over a flag, which is then named. 0: none.
  std::int64_t printed_batch = 0;
  // A program has run with these settings, so its own rules hold.
  bool has_run = false;
};

struct Draft {
  ImportedScenario imported;
  SortedJson document;
  std::vector<std::string> notes = {};  // on what is legal and not supported yet
};

// Errors: settings that make no legal scenario.
Result<Draft> read_draft(const ScenarioFlags& flags, ImportSource source,
                         const DataFolders& folders, const OutputOptions& output);

// Tells what was left out, and what may change the cost and has no key.
void print_notes(const Draft& draft, const OutputOptions& output);

}  // namespace stepcast::cli
