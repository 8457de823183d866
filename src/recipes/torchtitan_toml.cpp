// SPDX-License-Identifier: Apache-2.0
// The library reads brackets inside brackets by calls inside calls, and ends its tables so too.
#define TOML_MAX_NESTED_VALUES 64

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include <sstream>

#include "core/json_tree.h"
#include "core/limits.h"
#include "core/text/escape.h"
#include "recipes/torchtitan.h"

namespace stepcast {
namespace {

static_assert(kDeepestDocument == TOML_MAX_NESTED_VALUES);

// The number of a line with a dotted key of more parts than a document may have levels, or 0. The
// library makes a table of each part, and has no limit for them. A key stands on one line.
std::size_t line_of_deep_key(std::string_view text) {
  std::size_t number = 1;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const auto dots = static_cast<std::size_t>(std::count(line.begin(), line.end(), '.'));
    if (dots >= kDeepestDocument) return number;
    begin = end + 1;
  }
  return 0;
}

SortedJson to_json(const toml::node& node) {
  if (const auto* table = node.as_table()) {
    SortedJson out = SortedJson::object();
    for (const auto& [key, value] : *table) out[std::string(key.str())] = to_json(value);
    return out;
  }
  if (const auto* array = node.as_array()) {
    SortedJson out = SortedJson::array();
    for (const toml::node& item : *array) out.push_back(to_json(item));
    return out;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return whole->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  std::ostringstream text;  // dates and times
  node.visit([&](const auto& value) { text << value; });
  return text.str();
}

toml::table to_table(const SortedJson& object);

toml::array to_array(const SortedJson& list) {
  toml::array out;
  for (const SortedJson& item : list) {
    if (item.is_array()) {
      out.push_back(to_array(item));
    } else if (item.is_string()) {
      out.push_back(item.get<std::string>());
    } else {
      out.push_back(item.get<std::int64_t>());
    }
  }
  return out;
}

toml::table to_table(const SortedJson& object) {
  toml::table out;
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) {
      out.insert(key, to_table(value));
    } else if (value.is_array()) {
      out.insert(key, to_array(value));
    } else if (value.is_boolean()) {
      out.insert(key, value.get<bool>());
    } else if (value.is_number_integer()) {
      out.insert(key, value.get<std::int64_t>());
    } else if (value.is_number()) {
      out.insert(key, value.get<double>());
    } else {
      out.insert(key, value.get<std::string>());
    }
  }
  return out;
}

}  // namespace

Result<std::string> toml_to_json(const std::string& text, const std::string& file) {
  if (const std::size_t line = line_of_deep_key(text); line > 0) {
    return failure({ErrorCode::kSyntax,
                    fmt::format("has more than {} dots, which nest as deep", kDeepestDocument),
                    file, fmt::format("line {}", line), "no file of this kind has more than ten"});
  }
  try {
    return json_text(to_json(toml::parse(text)));
  } catch (const toml::parse_error& error) {
    return failure({ErrorCode::kSyntax, fmt::format("is not TOML: {}", error.description()), file,
                    fmt::format("line {}", error.source().begin.line), ""});
  }
}

std::string json_to_toml(const std::string& text) {
  std::ostringstream out;
  out << toml::toml_formatter(
      to_table(SortedJson::parse(text)),
      toml::toml_formatter::default_flags & ~(toml::format_flags::allow_literal_strings |
                                              toml::format_flags::allow_multi_line_strings));
  return toml_escapes(out.str()) + "\n";
}

}  // namespace stepcast
