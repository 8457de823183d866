// SPDX-License-Identifier: Apache-2.0
#include "report/html/markup.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/text/escape.h"

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

std::string without_trailing_zeros(std::string number) {
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number == "-0" ? "0" : number;
}

}  // namespace

Html text(std::string_view text) { return Html(xml_content(text)); }

Html element(std::string_view name, const std::vector<Attribute>& attributes, const Html& content) {
  std::string out = "<";
  out += name;
  for (const Attribute& attribute : attributes) {
    out += ' ';
    out += attribute.name;
    out += "=\"" + xml_attribute(attribute.value) + '"';
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
