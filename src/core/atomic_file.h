// SPDX-License-Identifier: Apache-2.0
// A text file that appears whole or not at all: it is written under a temporary name in the same
// folder, synchronised and renamed. After an error the old file is as it was, and the temporary one
// is gone.
//
// A pipe or /dev/null cannot be renamed over, so it is written directly. A link is followed, so
// that its target changes and the link stays.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"

namespace stepcast {

bool is_special_file(const std::string& path);  // there, and not a regular file
// One name for each file, which may not be there yet: without links, "." and "..".
std::string file_behind_links(const std::string& path);

// Whether a file of this folder can be written now: one that has no name, and is gone at once,
// takes a block of the disk. errno on failure.
bool has_room(const std::string& folder);

// All of `content` to an open file, through interruptions and partial writes; errno on failure.
bool write_all(int file, std::string_view content);

// The two halves of the above, for writers of several files that want all of them or none.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();  // removes what was not published

  Result<void> write(std::string_view content);  // once
  Result<void> publish();                        // after write()

 private:
  Result<void> unwritten() const;  // from errno

  std::string asked_;
  std::string path_;       // asked_ without links
  std::string temporary_;  // empty: nothing to remove
};

Result<void> write_file_atomically(const std::string& path, std::string_view content);

}  // namespace stepcast
