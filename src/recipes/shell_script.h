// SPDX-License-Identifier: Apache-2.0
// The commands that a shell script starts, with their words expanded: quotes, line continuation,
// variables, arrays (ARGS=( ... ), "${ARGS[@]}"), ${NAME:-default}, $((arithmetic)), functions,
// `if`, `case`, `for`, `&&` and `||`. Nothing is executed: command substitutions and unset
// variables stay as they are written ("$(hostname)", "${1}"), and a condition that hangs on them is
// not decided. The script is read as started without arguments.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

struct ShellScript {
  std::vector<std::vector<std::string>> commands;
  std::vector<std::string> undecided;              // conditions, as they are written
  std::map<std::string, std::string> environment;  // its variables of NCCL and CUDA, at its end
  // Its variables, loops and functions expand to more than kMostExpanded characters, and it is read
  // up to there.
  bool too_large = false;
};

// Variables that hold each other grow by powers; no launch script comes near this.
inline constexpr std::size_t kMostExpanded = std::size_t{1} << 20;

// Branches whose condition is not decided all run, one after the other, so that the last assignment
// counts, or none does.
enum class Undecided { kRun, kLeaveOut };

ShellScript read_shell(std::string_view text, const std::map<std::string, std::string>& variables,
                       Undecided branches = Undecided::kRun);

// The settings ("--tp 4") of a command that hang on conditions that are not decided: those that it
// has not where their branches are left out.
std::vector<std::string> undecided_settings(const std::vector<std::string>& command,
                                            const std::vector<std::string>& left_out);

}  // namespace stepcast
