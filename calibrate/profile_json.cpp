// SPDX-License-Identifier: Apache-2.0
#include "calibrate/profile_json.h"

#include <fmt/format.h>

#include <cmath>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "cost/profile_curves.h"

namespace stepcast {

namespace {

bool is_flat(const Json& node) {
  if (!node.is_array() && !node.is_object()) return true;
  for (const auto& item : node) {
    if (item.is_structured()) return false;
  }
  return true;
}

// Like dump(2), but a container of scalars that fits a line stays on it.
void print(const Json& node, std::size_t indent, std::string& out) {
  const std::string line = json_text(node);
  if (!node.is_structured() || (is_flat(node) && line.size() + indent <= 96)) {
    // json_text() has no blanks: one after each separator outside texts.
    bool text = false, escape = false;
    for (const char c : line) {
      if (c == '"' && !escape) text = !text;
      escape = text && c == '\\' && !escape;
      out += c;
      if (!text && (c == ',' || c == ':')) out += ' ';
    }
    return;
  }
  const std::string inner(indent + 2, ' ');
  out += node.is_array() ? "[\n" : "{\n";
  std::size_t left = node.size();
  for (std::size_t i = 0; i < node.size(); ++i) {
    out += inner;
    if (node.is_object()) out += json_literal(node.items()[i].first) + ": ";
    print(node.at(i), indent + 2, out);
    out += --left > 0 ? ",\n" : "\n";
  }
  out += std::string(indent, ' ') + (node.is_array() ? "]" : "}");
}

}  // namespace

double six_digits(double value) { return std::stod(fmt::format("{:.6g}", value)); }

Json error_json(const FitError& error) {
  return {{"median", rounded(error.median)}, {"p90", rounded(error.p90)}};
}

std::string profile_layout(const Json& root) {
  std::string out;
  print(root, 0, out);
  return out + "\n";
}

}  // namespace stepcast
