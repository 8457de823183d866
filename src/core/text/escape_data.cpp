// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/json_tree.h"
#include "core/text/characters.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

// "-3", "+0.5", "1e-5", "-8.3 %": what a spreadsheet reads as a number.
bool is_number(std::string_view text) {
  const auto skip_digits = [&] {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(digits);
    return digits > 0;
  };
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const bool whole = skip_digits();
  bool fraction = false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = skip_digits();
  }
  if (!whole && !fraction) return false;
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    if (!skip_digits()) return false;
  }
  return text.empty() || text == " %" || text == "%";
}

// OWASP, CSV injection: the characters at which a spreadsheet begins to calculate.
bool is_formula(std::string_view text) {
  constexpr std::string_view kBegins = "=+-@\t\r";
  return text.size() > 1 && kBegins.find(text.front()) != kBegins.npos && !is_number(text);
}

// `wide(value)` is the escape of a code point beyond 16 bits. Controls below 0x20 are the
// library's own: escapes already, or the layout of the file.
template <class Wide>
std::string with_escapes(std::string text, Wide wide) {
  const auto is_plain = [](unsigned char c) { return c < 0x7F; };
  if (std::all_of(text.begin(), text.end(), is_plain)) return text;
  std::string out;
  out.reserve(text.size() + 64);
  for_each_character(text, [&](const Character& next) {
    const auto value = static_cast<unsigned>(next.value);
    if (value < 0x20 || next.kind == CharacterKind::kShown) {
      out += next.bytes;
    } else if (next.kind == CharacterKind::kInvalid && next.bytes.size() == 1) {
      out += kReplacement;
    } else {
      out += value < 0x10000 ? fmt::format("\\u{:04x}", value) : wide(value);
    }
  });
  return out;
}

// "##[error]" in a log of CI is a command; JSON has such text inside quotes alone.
std::string without_commands(std::string text) {
  for (std::size_t at = text.find("##["); at != text.npos; at = text.find("##[", at)) {
    text.replace(at + 2, 1, "\\u005b");
  }
  return text;
}

// The library's own, which prints it.
nlohmann::ordered_json printable(const auto& tree) {
  using Value = nlohmann::ordered_json;
  if (tree.is_array()) {
    Value::array_t out;
    out.reserve(tree.size());
    for (const auto& value : tree) out.push_back(printable(value));
    return out;
  }
  if (tree.is_object()) {
    Value::object_t out;
    out.reserve(tree.size());
    for (const auto& [key, value] : tree.items())
      out.Container::emplace_back(key, printable(value));
    return out;
  }
  if (tree.is_boolean()) return tree.template get<bool>();
  if (tree.is_string()) return tree.get_text();
  if (tree.is_number_float()) return tree.template get<double>();
  if (tree.is_number_unsigned()) return tree.template get<std::uint64_t>();
  return tree.is_number() ? Value(tree.template get<std::int64_t>()) : Value();
}

std::string text_of(const auto& tree, int indent) {
  using Value = nlohmann::ordered_json;
  const auto pair = [](unsigned point) {
    return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((point - 0x10000) >> 10),
                       0xDC00 + ((point - 0x10000) & 0x3FF));
  };
  return without_commands(with_escapes(
      printable(tree).dump(indent, ' ', false, Value::error_handler_t::replace), pair));
}

}  // namespace

std::string csv_cell(std::string_view text) {
  std::string shown = shown_characters(text);
  if (is_formula(shown)) shown.insert(0, 1, '\'');
  // A cell that begins a line must not look like a command of CI either.
  const bool plain = shown.find_first_of(",\"\r\n") == shown.npos && !shown.starts_with("::") &&
                     shown.find("##[") == shown.npos;
  if (plain) return shown;
  std::string out = "\"";
  for (const char c : shown) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

bool is_plain_yaml(std::string_view text) {
  // The words of YAML 1.1 and 1.2 that are no text.
  constexpr std::array<std::string_view, 10> kWords{"true", "false", "yes", "no", "on",
                                                    "off",  "null",  "y",   "n",  "~"};
  const std::string word = lower_case(text);
  if (std::find(kWords.begin(), kWords.end(), word) != kWords.end()) return false;
  // A letter first: no number, date, anchor, tag or mark of a list begins with one.
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return c < 0x80 &&
                  (std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == '/');
         });
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "-+.,/:=@%_";
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 || kPlain.find(static_cast<char>(c)) != kPlain.npos);
  });
  if (plain) return std::string(text);
  std::string quoted, escaped;  // between '...', and between $'...'
  bool shown = true;
  for_each_character(text, [&](const Character& next) {
    const bool special = next.value == '\'' || next.value == '\\';
    if (next.kind == CharacterKind::kShown) {
      quoted += next.value == '\'' ? "'\\''" : std::string(next.bytes);
      escaped += (special ? "\\" : "") + std::string(next.bytes);
      return;
    }
    shown = false;
    for (const char byte : next.bytes) {
      escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
  });
  return shown ? "'" + quoted + "'" : "$'" + escaped + "'";
}

std::string in_comment(std::string_view text) {
  std::string out;
  for_each_character(text, [&](const Character& next) {
    out += next.kind == CharacterKind::kShown ? next.bytes : " ";
  });
  return out;
}

std::string toml_escapes(std::string text) {
  return with_escapes(std::move(text),
                      [](unsigned value) { return fmt::format("\\U{:08x}", value); });
}

std::string json_text(const SortedJson& value, int indent) { return text_of(value, indent); }
std::string json_text(const Json& value, int indent) { return text_of(value, indent); }

std::string json_literal(std::string_view text) { return json_text(SortedJson(text)); }

Written json_file(const SortedJson& value, int indent) {
  return Written::escaped(json_text(value, indent) + "\n");
}
Written json_file(const Json& value, int indent) {
  return Written::escaped(json_text(value, indent) + "\n");
}

// Inside <script> escapes of markup are not read, but JSON can write the three dangerous characters
// as escapes of its own.
std::string json_in_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace stepcast
