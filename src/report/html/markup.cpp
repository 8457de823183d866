// SPDX-License-Identifier: Apache-2.0
#include "report/html/markup.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace stepcast::html {
namespace {

// Elements that never have content: HTML knows no end tag of the first, and shapes need none.
constexpr std::array kWithoutContent{std::string_view("meta"), std::string_view("input"),
                                     std::string_view("br"),   std::string_view("rect"),
                                     std::string_view("line"), std::string_view("path"),
                                     std::string_view("use"),  std::string_view("circle")};

bool has_no_content(std::string_view name) {
  return std::find(kWithoutContent.begin(), kWithoutContent.end(), name) != kWithoutContent.end();
}

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct CodePoint {
  std::size_t length = 0;  // in bytes; 0: not UTF-8
  char32_t value = 0;
};

CodePoint code_point_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, lead};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  char32_t value = lead & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = (value << 6) | (byte(i) & 0x3Fu);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  return value < kLeast[length] ? CodePoint{} : CodePoint{length, value};
}

// Char of XML 1.0, section 2.2, without the control characters of C1, which HTML reads otherwise.
bool is_character(char32_t value) {
  if (value < 0x20) return value == '\t' || value == '\n' || value == '\r';
  if (value >= 0x7F && value < 0xA0) return false;
  return value < 0xD800 || (value > 0xDFFF && value < 0xFFFE) ||
         (value > 0xFFFF && value <= 0x10FFFF);
}

std::string_view entity_of(char32_t value) {
  switch (value) {
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

std::string without_trailing_zeros(std::string number) {
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number == "-0" ? "0" : number;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint next = code_point_at(text);
    const std::string_view entity = entity_of(next.value);
    if (next.length == 0 || !is_character(next.value)) {
      out += kReplacement;
    } else if (!entity.empty()) {
      out += entity;
    } else {
      out += text.substr(0, next.length);
    }
    text.remove_prefix(std::max<std::size_t>(next.length, 1));
  }
  return out;
}

Html text(std::string_view text) { return Html(escaped(text)); }

Html element(std::string_view name, const std::vector<Attribute>& attributes, const Html& content) {
  std::string out = "<";
  out += name;
  for (const Attribute& attribute : attributes) {
    out += ' ';
    out += attribute.name;
    out += "=\"" + escaped(attribute.value) + '"';
  }
  if (content.empty() && has_no_content(name)) return Html(out + "/>");
  out += '>';
  out += content.markup();
  out += "</";
  out += name;
  out += '>';
  return Html(std::move(out));
}

std::string coordinate(double value) {
  return without_trailing_zeros(fmt::format("{:.2f}", std::isfinite(value) ? value : 0));
}

std::string percent_of_width(double share) {
  return without_trailing_zeros(fmt::format("{:.3f}", std::isfinite(share) ? share * 100 : 0)) +
         "%";
}

}  // namespace stepcast::html
