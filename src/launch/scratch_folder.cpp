// SPDX-License-Identifier: Apache-2.0
#include "launch/scratch_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "core/failed_write.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "stepcast-scratch-";
constexpr const char* kOwner = "owner";
constexpr int kTries = 100;

bool lock(int file) { return ::flock(file, LOCK_EX | LOCK_NB) == 0; }

// Makes this process the owner; -1 with errno where that cannot be. A process that tidies up may
// come between each two of these calls; it has then removed the folder or holds the lock.
int own(const fs::path& folder) {
  const int file = ::open((folder / kOwner).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return -1;
  struct stat status {};
  const bool mine = lock(file) && ::fstat(file, &status) == 0 && status.st_nlink > 0;
  if (mine) return file;
  ::close(file);
  errno = ENOENT;
  return -1;
}

bool is_mine(const fs::path& folder) {
  struct stat status {};
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid();
}

// The owner's file goes last: whoever is killed on the way, or is not let, leaves a folder that the
// next one finds. Files go without being opened: there may be no descriptor left.
bool remove_all_of(DIR* listing, const fs::path& folder) {
  bool all = true;
  ::rewinddir(listing);
  while (const dirent* entry = ::readdir(listing)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || name == kOwner) continue;
    if (::unlinkat(::dirfd(listing), entry->d_name, 0) == 0) continue;
    std::error_code stays;
    fs::remove_all(folder / name, stays);
    all = all && !stays;
  }
  if (!all) return false;
  ::unlink((folder / kOwner).c_str());
  if (::rmdir(folder.c_str()) == 0) return true;
  // A child of a dead owner may write until it ends too: the next one shall find the folder again.
  const int file = ::open((folder / kOwner).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file >= 0) ::close(file);
  return false;
}

// A folder without the file is one that is just being made, or whose maker was killed before it
// could lock it. Both are empty, and a maker that finds its folder gone makes another.
bool remove_if_abandoned(const fs::path& folder) {
  if (!is_mine(folder)) return false;
  const int file = ::open((folder / kOwner).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return errno == ENOENT && ::rmdir(folder.c_str()) == 0;
  DIR* listing = lock(file) ? ::opendir(folder.c_str()) : nullptr;
  const bool removed = listing != nullptr && remove_all_of(listing, folder);
  if (listing != nullptr) ::closedir(listing);
  ::close(file);
  return removed;
}

tl::unexpected<Errors> not_made(const fs::path& parent) {
  const int reason = errno;
  return failure({ErrorCode::kIo,
                  fmt::format("no temporary folder can be made here: {}", std::strerror(reason)),
                  parent.string(), "",
                  hint_of_failed_write(reason, "set TMPDIR to a folder that can be written")});
}

}  // namespace

int remove_abandoned_folders(const fs::path& parent) {
  int removed = 0;
  std::error_code failed;
  for (fs::directory_iterator entry(parent, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (!entry->path().filename().string().starts_with(kPrefix)) continue;
    removed += remove_if_abandoned(entry->path()) ? 1 : 0;
  }
  return removed;
}

Result<ScratchFolder> ScratchFolder::create(const fs::path& parent, std::string_view purpose) {
  remove_abandoned_folders(parent);
  ScratchFolder folder;  // from here on no signal ends the process
  for (int attempt = 0; attempt < kTries; ++attempt) {
    std::string name = (parent / fmt::format("{}{}-XXXXXX", kPrefix, purpose)).string();
    if (::mkdtemp(name.data()) == nullptr) return not_made(parent);
    folder.path_ = name;
    folder.owner_ = own(folder.path_);
    if (folder.owner_ >= 0) folder.listing_ = ::opendir(name.c_str());
    if (folder.listing_ != nullptr) return folder;
    if (folder.owner_ >= 0 || errno != ENOENT) return not_made(parent);  // removes it
  }
  return not_made(parent);
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : watch_(std::move(other.watch_)),
      path_(std::exchange(other.path_, {})),
      owner_(std::exchange(other.owner_, -1)),
      listing_(std::exchange(other.listing_, nullptr)),
      kept_(other.kept_) {}

void ScratchFolder::keep() {
  kept_ = true;
  ::unlink((path_ / kOwner).c_str());  // a folder that is not empty and has no such file stays
}

ScratchFolder::~ScratchFolder() {
  // A destructor has nobody to tell. Without a listing the folder is empty.
  if (!path_.empty() && !kept_ && listing_ != nullptr) remove_all_of(listing_, path_);
  if (!path_.empty() && listing_ == nullptr) {
    ::unlink((path_ / kOwner).c_str());
    ::rmdir(path_.c_str());
  }
  if (listing_ != nullptr) ::closedir(listing_);
  if (owner_ >= 0) ::close(owner_);
}

}  // namespace stepcast
