// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/system_file.h"

#include <charconv>
#include <fstream>

namespace stepcast {

std::string first_line(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::optional<std::int64_t> first_number(const std::string& file) {
  const std::string line = first_line(file);
  std::int64_t value = 0;
  const auto parsed = std::from_chars(line.data(), line.data() + line.size(), value);
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::string field_of(const std::string& file, const std::string& key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(key)) continue;
    if (line.find_first_not_of(" \t", key.size()) != colon) continue;  // a longer key
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

}  // namespace stepcast
