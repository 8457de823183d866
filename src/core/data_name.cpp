// SPDX-License-Identifier: Apache-2.0
#include "core/data_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace stepcast {

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".json");
}

Result<std::vector<std::string>> data_names(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> out;
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
