// SPDX-License-Identifier: Apache-2.0
#include "core/read_roots.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

namespace stepcast {
namespace {

namespace fs = std::filesystem;

// The one state of the process that is no argument: a limit that every reader passes on would be
// one that some reader forgets.
std::optional<std::vector<std::string>>& roots() {
  static std::optional<std::vector<std::string>> folders;
  return folders;
}

}  // namespace

Result<std::vector<std::string>> bind_reads_below(const std::vector<std::string>& folders) {
  std::vector<std::string> found;
  for (const std::string& folder : folders) {
    std::error_code none;
    const fs::path real = fs::canonical(folder, none);
    if (none || !fs::is_directory(real, none)) {
      return failure({ErrorCode::kNotFound, fmt::format("'{}' is no folder", folder), "", "--root",
                      "a folder that exists"});
    }
    found.push_back(real.string());
  }
  roots() = found;
  return found;
}

bool may_read(int descriptor) { return may_name(fmt::format("/proc/self/fd/{}", descriptor)); }

bool may_name(const std::string& file) {
  const auto& folders = roots();
  if (!folders) return true;
  std::error_code none;
  const std::string real = fs::weakly_canonical(fs::absolute(file, none), none).string();
  return !none && std::ranges::any_of(*folders, [&](const std::string& folder) {
    return folder == "/" || real.starts_with(folder + "/");
  });
}

}  // namespace stepcast
