// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/text/characters.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

bool is_letter_or_digit(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || static_cast<unsigned char>(c) >= 0x80;
}

// Whether an underscore or a tilde stands inside a word, where GitHub reads it as itself.
bool is_inside_word(std::string_view text, std::size_t at) {
  return at > 0 && at + 1 < text.size() && is_letter_or_digit(text[at - 1]) &&
         is_letter_or_digit(text[at + 1]);
}

// GitHub makes links of bare addresses, up to the next blank, and reads no escapes inside.
bool begins_address(std::string_view text, std::size_t at) {
  return text.substr(at).starts_with("://") ||
         (text[at] == '.' && at >= 3 && text.substr(at - 3, 3) == "www");
}

bool begins_entity(std::string_view text) {
  return text.size() > 1 &&
         (text[1] == '#' || std::isalpha(static_cast<unsigned char>(text[1])) != 0);
}

std::string_view xml_entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return "";
  }
}

}  // namespace

std::string markdown_words(std::string_view text) {
  const std::string shown = shown_characters(text);
  std::string out;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const char c = shown[i];
    if (c == '\n' || c == '\t') {
      out += ' ';
      continue;
    }
    if (c == '<') {
      out += "&lt;";
      continue;
    }
    const bool marks = std::string_view("\\`*[]|$").find(c) != std::string_view::npos ||
                       begins_address(shown, i) || (c == '_' && !is_inside_word(shown, i)) ||
                       (c == '~' && !is_inside_word(shown, i)) ||
                       (c == '&' && begins_entity(std::string_view(shown).substr(i)));
    if (marks) out += '\\';
    out += c;
  }
  return out;
}

std::string markdown_line(std::string_view text) {
  std::string out = markdown_words(text);
  out.erase(0, std::min(out.find_first_not_of(' '), out.size()));  // four blanks begin code
  if (out.empty()) return out;
  const std::size_t digits = std::min(out.find_first_not_of("0123456789"), out.size());
  const bool numbered =
      digits > 0 && digits < out.size() && (out[digits] == '.' || out[digits] == ')');
  const bool is_item = numbered && (digits + 1 == out.size() || out[digits + 1] == ' ');
  const bool is_block = std::string_view("#>+-=:").find(out.front()) != std::string_view::npos;
  const bool is_number = out.size() > 1 && (out[0] == '-' || out[0] == '+') &&
                         std::isdigit(static_cast<unsigned char>(out[1])) != 0;
  if (is_item) {
    out.insert(digits, 1, '\\');
  } else if (is_block && !is_number) {
    out.insert(0, 1, '\\');
  }
  return out;
}

Written markdown_code_block(std::string_view text) {
  const Written lines = terminal_lines(text);
  std::size_t longest = 2, run = 0;
  for (const char c : lines.text()) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  return Written::escaped(fmt::format("{}text\n{}{}\n", fence, lines.text(), fence));
}

std::string xml_content(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : shown_characters(text)) {
    const std::string_view entity = xml_entity(c);
    if (entity.empty()) {
      out += c;
    } else {
      out += entity;
    }
  }
  return out;
}

std::string xml_attribute(std::string_view text) {
  std::string out;
  for (const char c : xml_content(text)) {
    out += c == '\n' ? "&#10;" : c == '\t' ? "&#9;" : std::string(1, c);
  }
  return out;
}

std::string dot_label(std::string_view text) {
  std::string out;
  for (const char c : shown_characters(text)) {
    if (c == '\n') {
      out += "\\n";
    } else {
      if (c == '\\') out += '\\';
      out += c;
    }
  }
  return out;
}

}  // namespace stepcast
