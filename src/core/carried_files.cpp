// SPDX-License-Identifier: Apache-2.0
#include "core/carried_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/read_roots.h"

namespace stepcast {
namespace {

std::span<const CarriedFile>& carried() {
  static std::span<const CarriedFile> files;
  return files;
}

}  // namespace

void carry_files(std::span<const CarriedFile> files) { carried() = files; }

bool is_carried(std::string_view path) { return path.starts_with(kCarriedRoot); }

const CarriedFile* carried_file(std::string_view path) {
  const auto files = carried();
  const auto found = std::ranges::lower_bound(files, path, {}, &CarriedFile::path);
  return found == files.end() || found->path != path ? nullptr : &*found;
}

std::vector<std::string_view> carried_below(std::string_view folder) {
  const std::string start = std::string(folder) + "/";
  std::vector<std::string_view> out;
  for (const CarriedFile& file : carried()) {
    if (file.path.starts_with(start)) out.push_back(file.path);
  }
  return out;
}

bool is_data_file(const std::string& path) {
  if (is_carried(path)) return carried_file(path) != nullptr;
  if (!may_name(path)) return false;
  std::error_code none;
  return std::filesystem::is_regular_file(path, none);
}

}  // namespace stepcast
