// SPDX-License-Identifier: Apache-2.0
// The launch files of one framework, both ways. Each format is a row that stands with its writer
// (deepspeed_write.cpp is the shortest), and an entry of the list in launch_format.cpp.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "layout/training.h"
#include "recipes/imported_scenario.h"
#include "recipes/launch_script.h"

namespace stepcast {

struct DataFolders;
struct FrameworkTraits;
struct Scenario;

struct LaunchFormat {
  const char* name;       // of `export --to` and `import --from`
  const char* program;    // "Megatron-LM", in messages
  const char* framework;  // whose scenarios it launches

  // Whether a text is of this format, when no format before it has claimed it; null: any text.
  bool (*recognises)(const std::string& text) = nullptr;
  ImportedScenario (*read)(const ImportInput& input);
  // Lists what the program itself would refuse of a scenario that is legal.
  Errors (*check)(const Scenario& scenario);

  // Either a file of settings, which a script names, or a script that holds them.
  const char* settings_file = nullptr;  // "ds_config.json"; null: the script holds them
  const char* script_file = nullptr;    // its usual name
  Result<std::string> (*write)(const Scenario& scenario, Launcher launcher,
                               const std::vector<Setting>& remarks, const DataFolders& folders);
  LaunchProgram (*program_with)(const std::string& settings_path) = nullptr;

  bool trains_adapters = false;  // or leaves them to the training program
  // Keys that the training program says, not the file.
  std::vector<std::string> (*left_to_program)(const Scenario& scenario);
};

std::span<const LaunchFormat* const> launch_formats();
const LaunchFormat* launch_format_named(const std::string& name);  // null: there is none
const LaunchFormat* launch_format_of(Framework framework);         // null: it has none
Error no_launch_files(const FrameworkTraits& framework);           // why, and which ones have

}  // namespace stepcast
