// SPDX-License-Identifier: Apache-2.0
// The program's commands for the manual page and for scripts that let a shell complete its words.
#pragma once

#include <string>
#include <vector>

#include "cli/described_command.h"
#include "core/text/written.h"

namespace stepcast::cli {

Written manual_page(const DescribedCommand& program, const std::string& version);

// "show models" and its like: all commands that can be run, by their words behind the program's.
struct RunnableCommand {
  std::string words;
  const DescribedCommand* command;
};
std::vector<RunnableCommand> runnable_commands(const DescribedCommand& program);

}  // namespace stepcast::cli
