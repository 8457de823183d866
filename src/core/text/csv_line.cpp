// SPDX-License-Identifier: Apache-2.0
#include "core/text/csv_line.h"

namespace stepcast {

std::vector<std::string> cells_of_csv_line(std::string_view line, std::size_t most) {
  std::vector<std::string> out(1);
  bool is_quoted = false;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (c == '"') {
      if (is_quoted && at + 1 < line.size() && line[at + 1] == '"') {
        out.back() += line[++at];
      } else {
        is_quoted = !is_quoted;
      }
    } else if (c == ',' && !is_quoted) {
      if (out.size() == most) return out;
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

}  // namespace stepcast
