// SPDX-License-Identifier: Apache-2.0
#include "core/remembered_files.h"

#include <sys/stat.h>

#include <chrono>

#include "core/carried_files.h"
#include "core/read_roots.h"

namespace stepcast {

std::optional<FileStamp> settled_stamp(const std::string& file) {
  if (is_carried(file)) {  // and never changes
    const CarriedFile* found = carried_file(file);
    if (found == nullptr) return std::nullopt;
    return FileStamp{.size = static_cast<std::int64_t>(found->bytes.size())};
  }
  if (!may_name(file)) return std::nullopt;
  struct stat status = {};
  if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t changed =
      std::int64_t{status.st_ctim.tv_sec} * kSecond + std::int64_t{status.st_ctim.tv_nsec};
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count();
  if (changed > now - kSecond) return std::nullopt;
  return FileStamp{status.st_dev, status.st_ino, status.st_size, changed};
}

}  // namespace stepcast
