// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "core/text/characters.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

std::string visible(const Character& character) {
  const auto value = static_cast<unsigned>(character.value);
  if (character.kind == CharacterKind::kTab) return "\\t";
  if (character.kind == CharacterKind::kLineFeed) return "\\n";
  if (character.value == '\r') return "\\r";
  if (value < 0x100) return fmt::format("\\x{:02x}", value);
  return value < 0x10000 ? fmt::format("\\u{:04x}", value) : fmt::format("\\U{:08x}", value);
}

// GitHub's runner reads commands from every line that a step prints: "::error::..." at its start,
// and the older "##[error]..." anywhere.
bool is_command_of_ci(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(' ');
  return begin != line.npos &&
         (line.substr(begin).starts_with("::") || line.find("##[") != line.npos);
}

}  // namespace

std::string terminal_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_character(text, [&](const Character& next) {
    out += next.kind == CharacterKind::kShown ? std::string(next.bytes) : visible(next);
  });
  if (!is_command_of_ci(out)) return out;
  for (std::size_t at = out.find("##["); at != out.npos; at = out.find("##[", at + 4)) {
    out.insert(at + 2, 1, '\\');
  }
  const std::size_t begin = out.find_first_not_of(' ');
  if (std::string_view(out).substr(begin).starts_with("::")) out.insert(begin, 1, '\\');
  return out;
}

Written terminal_lines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += terminal_line(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return Written::escaped(std::move(out));
}

Written github_command(std::string_view kind, std::string_view title, std::string_view text) {
  // GitHub reads % and line ends as its own escapes, in a property also : and the comma.
  const auto escaped = [](std::string_view value, std::string_view special) {
    std::string out;
    for (const char c : shown_characters(value)) {
      const bool reserved = special.find(c) != special.npos;
      out += reserved ? fmt::format("%{:02X}", c) : std::string(1, c);
    }
    return out;
  };
  return Written::escaped(
      fmt::format("::{} title={}::{}\n", kind, escaped(title, "%\r\n:,"), escaped(text, "%\r\n")));
}

}  // namespace stepcast
