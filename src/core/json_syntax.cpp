// SPDX-License-Identifier: Apache-2.0
#include "core/json_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace stepcast {
namespace {

constexpr const char* kBlanks = " \t\r\n";

// Says what a person would mend at the last byte of `read`, all that the parser took in; `said` is
// how it put it.
std::string what_to_mend(std::string_view read, std::string_view said) {
  const auto says = [&](std::string_view words) { return said.find(words) != said.npos; };
  const char at = read.back();
  const std::string_view before = read.substr(0, read.size() - 1);
  if (at == '#' || at == '/') return "JSON has no comments";
  if (at == '\'') return "JSON has double quotes only";
  if (says("invalid literal")) return "bare words other than true, false and null need quotes";
  if (at == '}' || at == ']') {
    const std::size_t last = before.find_last_not_of(kBlanks);
    if (last != before.npos && before[last] == ',') {
      return fmt::format("nothing stands between the last comma and '{}'", at);
    }
  }
  if (says("expected end of input")) return "the object is closed before it";
  if (says("control character")) return "a text ends on the line on which it begins";
  if (says("; expected '}'") || says("; expected ']'")) {
    return "a comma or a closing bracket is missing before it";
  }
  if (says("; expected ':'")) return "a colon is missing before it";
  if (says("object key")) return "a key in double quotes is missing before it";
  return "it makes no sense from there on";
}

// "line 3, column 7" of the last byte of `read`.
std::string place_of_last(std::string_view read) {
  const std::string_view before = read.substr(0, read.size() - 1);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t last_end = before.rfind('\n');
  const std::size_t column = last_end == before.npos ? read.size() : read.size() - last_end - 1;
  return fmt::format("line {}, column {}", line, column);
}

// The parser says "number overflow parsing '1e999'", and not where.
std::string what_is_too_large(std::string_view text, std::string_view said) {
  const std::size_t begin = said.find('\'');
  const std::size_t end = said.rfind('\'');
  if (begin == said.npos || end <= begin + 1) return "a number is too large";
  const std::string_view number = said.substr(begin + 1, end - begin - 1);
  const std::size_t at = text.find(number);
  const std::string what = fmt::format("the number {} is too large", number);
  if (at == text.npos) return what;
  return fmt::format("{}: {}", place_of_last(text.substr(0, at + 1)), what);
}

}  // namespace

std::string why_not_json(std::string_view text, const std::exception& error) {
  const std::string prefix = "not valid JSON: ";
  const auto* syntax = dynamic_cast<const nlohmann::json::parse_error*>(&error);
  if (text.find_first_not_of(kBlanks) == text.npos) return prefix + "it is empty";
  if (syntax == nullptr) return prefix + what_is_too_large(text, error.what());
  if (syntax->byte > text.size()) {
    return prefix + "it ends before its last bracket or quote is closed";
  }
  const std::string_view read = text.substr(0, std::max<std::size_t>(syntax->byte, 1));
  return fmt::format("{}{}: {}", prefix, place_of_last(read), what_to_mend(read, error.what()));
}

}  // namespace stepcast
