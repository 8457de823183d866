// SPDX-License-Identifier: Apache-2.0
#include "launch/scratch_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

namespace stepcast {

Result<ScratchFolder> ScratchFolder::create(const std::filesystem::path& parent,
                                            std::string_view purpose) {
  ScratchFolder folder;  // from here on no signal ends the process
  std::string name = (parent / fmt::format("stepcast-{}-XXXXXX", purpose)).string();
  if (::mkdtemp(name.data()) == nullptr) {
    return failure({ErrorCode::kIo,
                    fmt::format("no temporary folder can be made here: {}", std::strerror(errno)),
                    parent.string(), "", "set TMPDIR to a folder that can be written"});
  }
  folder.path_ = name;
  return folder;
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : watch_(std::move(other.watch_)), path_(std::exchange(other.path_, {})), kept_(other.kept_) {}

ScratchFolder::~ScratchFolder() {
  if (path_.empty() || kept_) return;
  std::error_code ignored;  // a destructor has nobody to tell
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace stepcast
