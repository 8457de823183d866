// SPDX-License-Identifier: Apache-2.0
#include "core/read_roots.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

namespace stepcast {
namespace {

namespace fs = std::filesystem;

// A folder by its own path, and by the path that names it, which may lead over links.
struct Root {
  fs::path real, named;
};

// The one state of the process that is no argument: a limit that every reader passes on would be
// one that some reader forgets.
std::optional<std::vector<Root>>& roots() {
  static std::optional<std::vector<Root>> folders;
  return folders;
}

// By the words of the paths alone.
bool lies_below(const fs::path& file, const fs::path& folder) {
  const auto [in_file, in_folder] =
      std::mismatch(file.begin(), file.end(), folder.begin(), folder.end());
  return in_folder == folder.end() && in_file != file.end();
}

fs::path plain_path(const std::string& file) {
  std::error_code none;
  fs::path out = fs::absolute(file, none).lexically_normal();
  return out.has_filename() ? out : out.parent_path();  // "models/" is a folder, too
}

bool is_real_path_below(const fs::path& real) {
  return std::ranges::any_of(*roots(),
                             [&](const Root& root) { return lies_below(real, root.real); });
}

// A link to nothing: to say that its target is not there would tell of the outside.
bool leads_over_a_dead_link(const fs::path& path) {
  std::error_code none;
  fs::path walked;
  for (const fs::path& part : path) {
    walked /= part;
    if (fs::is_symlink(fs::symlink_status(walked, none)) && !fs::exists(walked, none)) return true;
  }
  return false;
}

}  // namespace

Result<std::vector<std::string>> bind_reads_below(const std::vector<std::string>& folders) {
  std::vector<Root> found;
  std::vector<std::string> out;
  for (const std::string& folder : folders) {
    std::error_code none;
    const fs::path real = fs::canonical(folder, none);
    if (none || !fs::is_directory(real, none)) {
      return failure({ErrorCode::kNotFound, fmt::format("'{}' is no folder", folder), "", "--root",
                      "a folder that exists"});
    }
    found.push_back({real, plain_path(folder)});
    out.push_back(real.string());
  }
  roots() = std::move(found);
  return out;
}

bool reads_are_bound() { return roots().has_value(); }

std::optional<std::string> name_to_read(const std::string& file) {
  if (!roots()) return file;
  const fs::path plain = plain_path(file);
  const bool inside = std::ranges::any_of(*roots(), [&](const Root& root) {
    return lies_below(plain, root.real) || lies_below(plain, root.named);
  });
  return inside ? std::optional(plain.string()) : std::nullopt;
}

bool may_read(int descriptor) {
  if (!roots()) return true;
  std::error_code none;
  const fs::path real = fs::read_symlink(fmt::format("/proc/self/fd/{}", descriptor), none);
  return !none && is_real_path_below(real);
}

bool may_name(const std::string& file) {
  if (!roots()) return true;
  const auto name = name_to_read(file);
  if (!name) return false;
  std::error_code none;
  const fs::path real = fs::weakly_canonical(*name, none);
  return !none && is_real_path_below(real) && !leads_over_a_dead_link(real);
}

}  // namespace stepcast
