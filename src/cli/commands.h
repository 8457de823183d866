// SPDX-License-Identifier: Apache-2.0
// The commands of the program, one file each.
#pragma once

#include <span>
#include <vector>

#include "cli/session.h"

namespace stepcast::cli {

// All that this build of the program has, in the order of its help.
std::vector<Command> add_commands(CommandLine program);
// The commands that words of a user may need: the one that they begin with, where they name no
// other.
std::vector<Command> add_commands_for(CommandLine program, std::span<char* const> words);

Command add_predict(CommandLine program);
Command add_check(CommandLine program);
Command add_plan(CommandLine program);
Command add_compare(CommandLine program);
Command add_calibrate(CommandLine program);
Command add_validate(CommandLine program);
Command add_diagnose(CommandLine program);
Command add_replay(CommandLine program);
std::vector<Command> add_show(CommandLine program);
std::vector<Command> add_topology(CommandLine program);
Command add_export(CommandLine program);
Command add_import(CommandLine program);
Command add_gate(CommandLine program);
Command add_doctor(CommandLine program);
Command add_serve(CommandLine program);
std::vector<Command> add_completion(CommandLine program);

}  // namespace stepcast::cli
