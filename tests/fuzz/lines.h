// SPDX-License-Identifier: Apache-2.0
// Texts of lines "path=value".
#pragma once

#include <algorithm>
#include <string_view>

namespace stepcast::fuzz {

template <class Take>
void for_each_setting(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = line.find('=');
    if (equals != line.npos) take(line.substr(0, equals), line.substr(equals + 1));
  }
}

}  // namespace stepcast::fuzz
