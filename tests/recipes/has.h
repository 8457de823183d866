// SPDX-License-Identifier: Apache-2.0
// Whether a text holds a part.
#pragma once

#include <string>

namespace stepcast::testing {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace stepcast::testing
