// SPDX-License-Identifier: Apache-2.0
#include "stepcast/detail/data_root.h"

#include <filesystem>

#include "core/carried_files.h"

namespace stepcast {

namespace fs = std::filesystem;

bool holds_data(const std::string& folder) {
  if (is_carried(folder)) return !carried_below(folder).empty();
  std::error_code none;
  const fs::path path = folder;
  return fs::is_directory(path / "models", none) && fs::is_directory(path / "topologies", none);
}

DataRoot data_in(const std::string& folder) {
  // The source tree keeps profiles beside the code that fits them.
  std::error_code none;
  const fs::path root = folder;
  const fs::path in_source = root / "calibrate" / "profiles";
  const fs::path profiles = fs::is_directory(in_source, none) ? in_source : root / "profiles";
  return {{(root / "models").string(), (root / "topologies").string(), profiles.string(),
           (root / "prices").string()},
          (root / "suites").string(),
          {(root / "prices").string(), ""},
          root.string()};
}

}  // namespace stepcast
