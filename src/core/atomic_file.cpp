// SPDX-License-Identifier: Apache-2.0
#include "core/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace stepcast {
namespace {

namespace fs = std::filesystem;

// Free names are found by trying: a killed process with this id may have left its own behind.
int open_beside(const std::string& path, std::string& name) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    name = fmt::format("{}.{}-{}", path, ::getpid(), attempt);
    const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

bool fill(int file, std::string_view content, const std::string& path) {
  // A new file has the mode that the process gives its files, one that is replaced keeps its own.
  struct stat old {};
  if (::stat(path.c_str(), &old) == 0 && ::fchmod(file, old.st_mode & 07777) != 0) return false;
  return write_all(file, content) && ::fsync(file) == 0;
}

// Makes the rename itself survive a crash. Where a file system cannot do so, the file is still
// whole.
void synchronise_folder(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  const int folder = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY);
  if (folder < 0) return;
  ::fsync(folder);
  ::close(folder);
}

bool write_in_place(const std::string& path, std::string_view content) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool written = write_all(file, content);
  const int reason = errno;
  const bool closed = ::close(file) == 0;
  if (!written) errno = reason;
  return written && closed;
}

}  // namespace

bool is_special_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

std::string file_behind_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // as many as the kernel follows
  std::error_code none;
  fs::path at = fs::absolute(path, none);
  for (int links = 0; links < kMostLinks && fs::is_symlink(at, none); ++links) {
    at = at.parent_path() / fs::read_symlink(at, none);
  }
  const fs::path resolved = fs::weakly_canonical(at, none);
  return none ? path : resolved.string();
}

bool has_room(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) {
    // Some file systems have no files without a name, and WebAssembly does not know of them.
    const bool unknown =
        errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL;
    return unknown && ::access(folder.c_str(), W_OK | X_OK) == 0;
  }
  constexpr std::size_t kBlock = 4096;
  const bool written = write_all(file, std::string(kBlock, ' '));
  const int reason = errno;
  ::close(file);
  errno = reason;
  return written;
}

bool write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

AtomicFile::AtomicFile(const std::string& path) : asked_(path), path_(file_behind_links(path)) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : asked_(std::move(other.asked_)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, std::string())) {}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> AtomicFile::unwritten() const {
  return failure(
      {ErrorCode::kIo, fmt::format("cannot be written: {}", std::strerror(errno)), asked_, "", ""});
}

Result<void> AtomicFile::write(std::string_view content) {
  if (is_special_file(path_)) {
    if (!write_in_place(path_, content)) return unwritten();
    return {};
  }
  std::string name;
  const int file = open_beside(path_, name);
  if (file < 0) return unwritten();
  temporary_ = name;
  const bool filled = fill(file, content, path_);
  const int reason = errno;
  const bool closed = ::close(file) == 0;
  if (!filled) errno = reason;
  if (!filled || !closed) return unwritten();
  return {};
}

Result<void> AtomicFile::publish() {
  if (temporary_.empty()) return {};  // written in place
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return unwritten();
  temporary_.clear();
  synchronise_folder(path_);
  return {};
}

Result<void> write_file_atomically(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  if (auto written = file.write(content); !written) return written;
  return file.publish();
}

}  // namespace stepcast
