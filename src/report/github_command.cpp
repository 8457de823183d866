// SPDX-License-Identifier: Apache-2.0
#include "report/github_command.h"

#include <fmt/format.h>

namespace stepcast {
namespace {

// GitHub reads % and line ends as its own escapes, in a property also : and the comma.
std::string escaped(std::string_view text, bool property) {
  std::string out;
  for (const char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    out += special ? fmt::format("%{:02X}", c) : std::string(1, c);
  }
  return out;
}

}  // namespace

std::string github_command(std::string_view kind, std::string_view title, std::string_view text) {
  return fmt::format("::{} title={}::{}\n", kind, escaped(title, true), escaped(text, false));
}

}  // namespace stepcast
