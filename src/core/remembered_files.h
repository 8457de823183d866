// SPDX-License-Identifier: Apache-2.0
// Keeps what files were read as, for as long as they stay the same. Whoever forecasts a thousand
// scenarios reads the shipped tables once.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"

namespace stepcast {

// Tells one content of a file from another, without reading it.
struct FileStamp {
  std::uint64_t device = 0, node = 0;
  std::int64_t size = 0, changed_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

// Has no stamp for what is no file, nor for one that changed within the last second: it may change
// again before its time does.
std::optional<FileStamp> settled_stamp(const std::string& file);

// Errors are not remembered. For several threads.
template <class T>
class RememberedFiles {
 public:
  // Returns the Result<T> that `read()` makes of these files, or made of them the last time.
  template <class Read>
  Result<T> get(const std::vector<std::string>& files, const Read& read) {
    std::vector<FileStamp> stamps;
    for (const std::string& file : files) {
      const std::optional<FileStamp> stamp = settled_stamp(file);
      if (!stamp) return read();
      stamps.push_back(*stamp);
    }
    {
      const std::scoped_lock lock(mutex_);
      const auto known = known_.find(files);
      if (known != known_.end() && known->second.first == stamps) return known->second.second;
    }
    Result<T> result = read();
    if (!result) return result;
    const std::scoped_lock lock(mutex_);
    known_.insert_or_assign(files, std::pair(std::move(stamps), *result));
    return result;
  }

 private:
  std::mutex mutex_;
  std::map<std::vector<std::string>, std::pair<std::vector<FileStamp>, T>> known_;
};

}  // namespace stepcast
