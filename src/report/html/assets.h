// SPDX-License-Identifier: Apache-2.0
// page.css and page.js, which the build embeds (cmake/HtmlAssets.cmake), and their SHA-256 as
// hexadecimal digits: the content policy of a page lets these two in by hash and nothing else.
#pragma once

#include <string_view>

namespace stepcast::html {

struct Asset {
  std::string_view content;
  std::string_view sha256;
};

extern const Asset kStyle;
extern const Asset kScript;

}  // namespace stepcast::html
