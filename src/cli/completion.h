// SPDX-License-Identifier: Apache-2.0
// Scripts that let a shell complete the program's words, and its manual page.
#pragma once

#include "cli/described_command.h"
#include "core/text/written.h"

namespace stepcast::cli {

Written bash_completion(const DescribedCommand& program);
Written zsh_completion(const DescribedCommand& program);
Written fish_completion(const DescribedCommand& program);
Written manual_page(const DescribedCommand& program, const std::string& version);

// The topic of `stepcast show` that lists what a flag's value may be ("models" of --model); ""
// where there is none.
std::string topic_of_values(const DescribedFlag& flag);
bool takes_file(const DescribedFlag& flag);

// "show models" and its like: all commands that can be run, by their words behind the program's.
struct RunnableCommand {
  std::string words;
  const DescribedCommand* command;
};
std::vector<RunnableCommand> runnable_commands(const DescribedCommand& program);

}  // namespace stepcast::cli
