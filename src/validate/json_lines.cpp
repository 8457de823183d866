// SPDX-License-Identifier: Apache-2.0
#include "validate/json_lines.h"

#include <algorithm>

#include "core/json_tree.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

constexpr std::size_t kWidth = 100;  // of an object on one line

void append(std::string& out, const Json& value, const std::string& indent) {
  std::string line = json_text(value);
  const bool nested = std::any_of(value.begin(), value.end(),
                                  [](const Json& member) { return member.is_object(); });
  if (!value.is_object() || value.empty() || (!nested && line.size() <= kWidth)) {
    out += line;
    return;
  }
  const std::string inner = indent + " ";
  const char* separator = "{\n";
  for (const auto& [key, member] : value.items()) {
    out += separator + inner + json_literal(key) + ": ";
    append(out, member, inner);
    separator = ",\n";
  }
  out += "\n" + indent + "}";
}

}  // namespace

Written json_lines(const Json& value) {
  std::string out;
  append(out, value, "");
  return Written::escaped(out + "\n");
}

}  // namespace stepcast
