// SPDX-License-Identifier: Apache-2.0
// The command of a shell script that launches the training: that with most of a program's flags.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "recipes/imported_scenario.h"

namespace stepcast {

struct LaunchCommand {
  std::vector<std::string> words;
  std::map<std::string, std::string> environment;  // variables of NCCL and CUDA
};

// `marks` counts the flags that a command has of the program; of equal ones the last counts.
// Conditions that are not decided and the settings that hang on them become warnings of `out`.
// Nothing: none has any, and `missing` is the error, or the script is too large.
std::optional<LaunchCommand> find_launch_command(
    const ImportInput& input,
    const std::function<std::int64_t(const std::vector<std::string>&)>& marks, const Error& missing,
    ImportedScenario& out);

}  // namespace stepcast
