// SPDX-License-Identifier: Apache-2.0
// A scenario from a file, from flags, or from both: the flags are laid over the file's JSON, which
// is then read as any other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/session.h"
#include "core/json_fwd.h"
#include "core/result.h"

namespace stepcast {
struct DataFolders;
}  // namespace stepcast

namespace stepcast::cli {

struct ScenarioFlags {
  struct Value {
    std::string flag;                                     // "--tp"
    std::string path;                                     // "layout.tp"
    bool text = false;                                    // always text: a model may be called 7
    Result<double> (*count)(std::string_view) = nullptr;  // reads "2T" or "$500k"
    std::string example = {};                             // of a count
    std::string value;
    Flag option;
  };
  std::string file;
  std::optional<std::int32_t> place;  // the file is a plan, of which this place is the scenario
  std::vector<std::unique_ptr<Value>> values;
  std::vector<std::string> sets;    // "path=value", applied after the values
  std::vector<std::string> varied;  // such a text for one point of a grid, applied last
  std::vector<std::string> fixed;   // such a text for a search, applied after `sets`
  bool spot = false;                // run.rental=spot
  std::string assume;               // family for an unknown model_type
};

void add_scenario_flags(CommandLine app, ScenarioFlags& flags);
// Adds all of them but the positional scenario file.
void add_scenario_values(CommandLine app, ScenarioFlags& flags);
// Keys of `run`, for commands that forecast a whole run.
void add_run_flags(CommandLine app, ScenarioFlags& flags);
// --prices FILE, beside them.
void add_prices_flag(CommandLine app, std::string& file);

// Keys of `plan` that only an advice answers to.
void add_demand_flags(CommandLine app, ScenarioFlags& flags);

// Lays one "path=value" of --set or --vary over a scenario, also inside a cluster or a model that
// is only named so far.
Errors set_key(const std::string& text, const DataFolders& folders, SortedJson& scenario);

// "path=value" from the command line, split at the first '='.
Result<std::pair<std::string, std::string>> split_set(const std::string& text);

// The JSON of the file with all flags laid over it, and what is wrong with the flags. Errors: a
// file that cannot be read.
struct StatedText {
  std::string text;
  Errors errors;
  std::string layout_of_file;  // the JSON that the file states before the flags; may be empty
};
Result<StatedText> stated_text(const ScenarioFlags& flags, const DataFolders& folders);
// Errors about a key that a flag set name the flag; a contradiction within the file names the flags
// that were laid over it. Errors about a varied key name that key alone.
Errors name_flags(Errors errors, const ScenarioFlags& flags);

// The flags laid over a scenario document.
Errors apply_flags(const ScenarioFlags& flags, const DataFolders& folders, SortedJson& scenario);

}  // namespace stepcast::cli
