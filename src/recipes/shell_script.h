// SPDX-License-Identifier: Apache-2.0
// The commands of a shell script with their words expanded: quotes, line continuation, variables,
// arrays (ARGS=( ... ), "${ARGS[@]}"), ${NAME:-default} and $((arithmetic)). Nothing is executed:
// command substitutions and unset variables stay as they are written ("$(hostname)", "${1}"), and
// of an `if` or `case` all branches are read.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

struct ShellScript {
  std::vector<std::vector<std::string>> commands;
  bool branches = false;  // if, case, for or while: not followed
  // Its variables expand to more than kMostExpanded characters, and it is read up to there.
  bool too_large = false;
};

// Variables that hold each other grow by powers; no launch script comes near this.
inline constexpr std::size_t kMostExpanded = std::size_t{1} << 20;

ShellScript read_shell(std::string_view text, const std::map<std::string, std::string>& variables);

// The value of "$((...))" without its brackets; empty when it is no whole number.
// `value_of` gives the text of a variable.
std::string shell_arithmetic(std::string_view expression,
                             const std::map<std::string, std::vector<std::string>>& variables);

}  // namespace stepcast
