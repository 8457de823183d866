// SPDX-License-Identifier: Apache-2.0
#include "validate/json_lines.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace stepcast {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kWidth = 100;  // of an object on one line

std::string compact(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

void append(std::string& out, const ordered_json& value, const std::string& indent) {
  std::string line = compact(value);
  const bool nested = std::any_of(value.begin(), value.end(),
                                  [](const ordered_json& member) { return member.is_object(); });
  if (!value.is_object() || value.empty() || (!nested && line.size() <= kWidth)) {
    out += line;
    return;
  }
  const std::string inner = indent + " ";
  const char* separator = "{\n";
  for (const auto& [key, member] : value.items()) {
    out += separator + inner + compact(key) + ": ";
    append(out, member, inner);
    separator = ",\n";
  }
  out += "\n" + indent + "}";
}

}  // namespace

std::string json_lines(const ordered_json& value) {
  std::string out;
  append(out, value, "");
  return out + "\n";
}

}  // namespace stepcast
