// SPDX-License-Identifier: Apache-2.0
// The program's commands for the manual page and for scripts that let a shell complete its words.
#pragma once

#include <string>
#include <vector>

#include "cli/described_command.h"
#include "core/text/written.h"

namespace stepcast::cli {

Written manual_page(const DescribedCommand& program, const std::string& version);

struct NamedCommand {
  std::string words;  // behind the program's: "show models"
  const DescribedCommand* command;
};

// Every command below the program, and those below them; one that has others below it cannot be
// run.
std::vector<NamedCommand> all_commands(const DescribedCommand& program);

}  // namespace stepcast::cli
