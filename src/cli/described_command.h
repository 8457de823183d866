// SPDX-License-Identifier: Apache-2.0
// A command and its flags as data: completions of shells and the manual page are made of it.
#pragma once

#include <string>
#include <vector>

namespace stepcast::cli {

struct DescribedFlag {
  std::vector<std::string>
      names;          // "-o", "--output"; the name of a word without a flag: "SCENARIO"
  std::string value;  // what its value is called: "FILE"; empty: it takes none
  std::string help;
  std::vector<std::string> choices;  // all values that it takes, where they are a list
};

struct DescribedCommand {
  std::string name, help;
  std::string footer;  // with examples
  std::vector<DescribedFlag> flags;
  std::vector<DescribedFlag> words;  // without a flag
  std::vector<DescribedCommand> commands;
};

}  // namespace stepcast::cli
