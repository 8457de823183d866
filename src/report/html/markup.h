// SPDX-License-Identifier: Apache-2.0
// Markup that cannot hold unescaped text: everything from a file or a user enters it through
// text() or an attribute, both of which escape. Well-formed as HTML and as XML.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepcast::html {

class Html {
 public:
  Html() = default;
  const std::string& markup() const { return markup_; }
  bool empty() const { return markup_.empty(); }
  Html& operator+=(const Html& more) {
    markup_ += more.markup_;
    return *this;
  }
  friend Html operator+(Html left, const Html& right) { return left += right; }

  // Only for markup that this program contains itself: its style and script.
  static Html written_here(std::string_view markup) { return Html(std::string(markup)); }

 private:
  friend Html text(std::string_view text);
  friend Html element(std::string_view name, const std::vector<struct Attribute>& attributes,
                      const Html& content);
  explicit Html(std::string markup) : markup_(std::move(markup)) {}

  std::string markup_;
};

struct Attribute {
  std::string_view name;
  std::string value;
};

Html text(std::string_view text);
Html element(std::string_view name, const std::vector<Attribute>& attributes = {},
             const Html& content = {});
inline Html element(std::string_view name, const std::vector<Attribute>& attributes,
                    std::string_view content) {
  return element(name, attributes, text(content));
}

// A coordinate with two decimals at most, and a share of the width in percent with three.
std::string coordinate(double value);
std::string percent_of_width(double share);

}  // namespace stepcast::html
