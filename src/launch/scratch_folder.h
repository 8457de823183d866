// SPDX-License-Identifier: Apache-2.0
// A new folder for the files of one run. The destructor removes it with everything in it. It holds
// a SignalWatch, so Ctrl-C does not end the process before that: a launch that is under way then
// ends at once, and other work asks interrupted() when it suits.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "core/result.h"
#include "launch/signal_watch.h"

namespace stepcast {

class ScratchFolder {
 public:
  // PARENT/stepcast-PURPOSE-XXXXXX, for the owner only. `parent` is what TMPDIR says, or /tmp.
  static Result<ScratchFolder> create(const std::filesystem::path& parent,
                                      std::string_view purpose);
  ScratchFolder(ScratchFolder&&) noexcept;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path file(std::string_view name) const { return path_ / name; }
  int interrupted() const { return watch_->signal(); }  // the signal, 0: no
  void keep() { kept_ = true; }                         // for whoever looks for a fault

 private:
  ScratchFolder() = default;

  std::unique_ptr<SignalWatch> watch_ = std::make_unique<SignalWatch>();
  std::filesystem::path path_;
  bool kept_ = false;
};

}  // namespace stepcast
