// SPDX-License-Identifier: Apache-2.0
// Reads the arguments of a tool's call one by one. All that is wrong with them is listed, with what
// is accepted; an argument that the tool does not have is an error too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/json_fwd.h"
#include "core/result.h"
#include "stepcast/scenario.h"

namespace stepcast {

class ToolArguments {
 public:
  ToolArguments(const api::Data& data, const Json& arguments);

  std::string text(const char* name, const std::string& fallback);
  std::optional<std::string> required_text(const char* name);
  std::int64_t integer(const char* name, std::int64_t fallback, std::int64_t least,
                       std::int64_t most);
  bool boolean(const char* name, bool fallback);
  std::vector<std::string> texts(const char* name);
  // Keys and values of an object, each value as JSON text: {"tp": 4} is {"tp", "4"}.
  std::map<std::string, std::string> keys(const char* name);

  // The argument `scenario`, with the keys of the argument `set` laid over it.
  std::optional<api::Scenario> scenario();
  // The argument `scenarios`: objects with a name and a scenario.
  std::vector<api::Scenario> scenarios(std::size_t most);

  // Call it last: what is wrong, and arguments that nobody asked for.
  Errors errors();

 private:
  const Json* find(const char* name);
  void fail(const std::string& name, std::string message, std::string hint,
            ErrorCode code = ErrorCode::kBadValue);
  std::optional<api::Scenario> read_scenario(const std::string& path, const Json& value,
                                             const std::string& name);

  const api::Data& data_;
  const Json& arguments_;
  std::vector<std::string> asked_;
  Errors errors_;
};

}  // namespace stepcast
