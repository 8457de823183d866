// SPDX-License-Identifier: Apache-2.0
#include "core/data_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "core/carried_files.h"

namespace stepcast {

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".json") ||
         name.ends_with(".xml") || name.ends_with(".txt");
}

std::string plain_name(std::string_view name) {
  std::string out;
  for (const char letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalnum(byte) != 0 || letter == '.') out += static_cast<char>(std::tolower(byte));
  }
  return out;
}

std::vector<std::string> names_with(std::string_view word, const std::vector<std::string>& names) {
  const std::string plain = plain_name(word);
  std::vector<std::string> out;
  if (plain.empty()) return out;
  for (const std::string& name : names) {
    if (plain_name(name).find(plain) != std::string::npos) out.push_back(name);
  }
  return out;
}

std::string nearest_of(std::string_view word, const std::vector<std::string>& fitting,
                       const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;  // a longer list helps nobody to choose
  const bool few = fitting.size() > 1 && fitting.size() <= kMost;
  return few ? fmt::format("did you mean {}?", one_of(fitting)) : did_you_mean(word, names);
}

Result<std::vector<std::string>> data_names(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> out;
  if (is_carried(folder)) {
    for (const std::string_view path : carried_below(folder)) {
      const fs::path file = path;
      if (file.parent_path() == folder) out.push_back(file.stem().string());
    }
    return out;
  }
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const fs::path& path = entry->path();
    if (path.extension() == ".json") out.push_back(path.stem().string());
  }
  const bool absent =
      failed == std::errc::no_such_file_or_directory || failed == std::errc::not_a_directory;
  if (failed && !absent) {
    return failure(
        {ErrorCode::kIo, fmt::format("cannot be read: {}", failed.message()), folder, "", ""});
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace stepcast
