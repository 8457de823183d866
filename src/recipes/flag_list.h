// SPDX-License-Identifier: Apache-2.0
// The arguments of a program as flags with values, and which of them have been asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/imported_scenario.h"

namespace stepcast {

class FlagList {
 public:
  // "--a 1 2 --b --c=3": a flag has the words up to the next one as values. When a flag is given
  // twice, the last one counts, as in argparse. Errors go to `imported`.
  FlagList(const std::vector<std::string>& words, ImportedScenario& imported);

  bool has(std::string_view name) const;  // asked or not
  bool given(std::string_view name);
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t min = 1);
  std::optional<double> number(std::string_view name);
  std::optional<std::string> text(std::string_view name);
  std::vector<std::string> values(std::string_view name);
  // One of `names`, else an error that lists them.
  std::optional<std::string> choice(std::string_view name, const std::vector<std::string>& names);

  std::vector<std::string> unasked() const;  // names
  ImportedScenario& imported() { return imported_; }

 private:
  struct Flag {
    std::string name;
    std::vector<std::string> values;
    bool asked = false;
  };
  Flag* find(std::string_view name);
  std::optional<std::string> one_value(std::string_view name);

  std::vector<Flag> flags_;
  ImportedScenario& imported_;
};

}  // namespace stepcast
