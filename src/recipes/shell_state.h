// SPDX-License-Identifier: Apache-2.0
// A shell script while it is read, for the parts of its reader (recipes/shell_script.h).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/shell_script.h"

namespace stepcast {

using ShellVariables = std::map<std::string, std::vector<std::string>>;

struct ShellState {
  enum class Mode { kRun, kSkip };  // a branch that is skipped is read and changes nothing

  ShellVariables variables;                      // "1" and so on, "@" and "#" inside a function
  std::map<std::string, std::string> functions;  // their bodies
  std::set<std::string> named;                   // functions that stand as commands
  ShellScript script;
  Undecided branches = Undecided::kRun;
  Mode mode = Mode::kRun;
  std::size_t expanded = 0;  // characters, over all readers of the script
};

// Whether nothing of a text hangs on what is not known.
bool is_known(std::string_view text);

// Whether a pattern with *, ? and [...] is of the text.
bool matches_glob(std::string_view pattern, std::string_view text);

// The value of "$((...))" without its brackets; empty when it is no whole number.
std::string shell_arithmetic(std::string_view expression, const ShellVariables& variables);

// Says whether [ ... ] or [[ ... ]] holds for its words; nothing: it is not decided. In double
// brackets the right side of == is a pattern.
std::optional<bool> shell_test(const std::vector<std::string>& words, bool double_brackets,
                               const ShellVariables& variables);

}  // namespace stepcast
