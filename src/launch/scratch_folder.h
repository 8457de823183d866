// SPDX-License-Identifier: Apache-2.0
// A new folder for the files of one run. The destructor removes it with everything in it. It holds
// a SignalWatch, so Ctrl-C does not end the process before that: a launch that is under way then
// ends at once, and other work asks interrupted() when it suits.
//
// A process that is killed cannot remove its folder, so the next one does: an owner holds a lock on
// the file `owner` in its folder for as long as it lives, and the system gives the lock back when
// the process ends, however it ends. A folder whose lock is free belongs to nobody. Numbers of
// processes would not do: they are used again, and mean nothing in another container.
#pragma once

#include <dirent.h>

#include <filesystem>
#include <memory>
#include <string_view>

#include "core/result.h"
#include "launch/signal_watch.h"

namespace stepcast {

class ScratchFolder {
 public:
  // PARENT/stepcast-scratch-PURPOSE-XXXXXX, for this user only. `parent` is what TMPDIR says, or
  // /tmp. First removes the folders there whose owner has ended.
  static Result<ScratchFolder> create(const std::filesystem::path& parent,
                                      std::string_view purpose);
  ScratchFolder(ScratchFolder&&) noexcept;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path file(std::string_view name) const { return path_ / name; }
  int interrupted() const { return watch_->signal(); }  // the signal, 0: no
  // From now on it stays when this ends, also where nobody else wants it.
  void keep();

 private:
  ScratchFolder() = default;

  std::unique_ptr<SignalWatch> watch_ = std::make_unique<SignalWatch>();
  std::filesystem::path path_;
  int owner_ = -1;          // the locked file
  DIR* listing_ = nullptr;  // open from the start, so that the folder can go without a descriptor
  bool kept_ = false;
};

// Removes the folders of `parent` that create() made and whose owner has ended; returns how many.
int remove_abandoned_folders(const std::filesystem::path& parent);

}  // namespace stepcast
