// SPDX-License-Identifier: Apache-2.0
#include "cli/key_values.h"

namespace stepcast::cli {

std::vector<std::string> split_values(const std::string& text) {
  std::vector<std::string> out(1);
  int depth = 0;
  for (const char letter : text) {
    depth += letter == '{' || letter == '[' ? 1 : letter == '}' || letter == ']' ? -1 : 0;
    if (letter == ',' && depth <= 0) {
      out.emplace_back();
    } else {
      out.back() += letter;
    }
  }
  return out;
}

}  // namespace stepcast::cli
