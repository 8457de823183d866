// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;

std::string reason() { return std::strerror(errno); }

bool write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// A file that is not a regular one (a pipe, /dev/null) is written in place.
bool is_special(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

// A link is followed, so that its target changes and the link stays.
std::string target_of(const std::string& path) {
  std::error_code none;
  const fs::path resolved = fs::canonical(path, none);
  return none ? path : resolved.string();
}

std::string folder_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::optional<std::string> why_not_writable(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return "is a folder";
    if (::access(path.c_str(), W_OK) != 0) return reason();
    if (!S_ISREG(status.st_mode)) return std::nullopt;
  }
  const std::string folder = folder_of(target_of(path));
  if (::stat(folder.c_str(), &status) != 0) return fmt::format("{}: {}", folder, reason());
  if (!S_ISDIR(status.st_mode)) return fmt::format("{} is not a folder", folder);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return fmt::format("{}: {}", folder, reason());
  return std::nullopt;
}

// A file under a temporary name beside its place.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path) : path_(target_of(path)) {
    temporary_ = path_ + ".XXXXXX";
    file_ = ::mkstemp(temporary_.data());
  }
  TemporaryFile(TemporaryFile&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::move(other.temporary_)),
        file_(std::exchange(other.file_, -1)),
        pending_(std::exchange(other.pending_, false)) {}
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile() {
    if (file_ >= 0) ::close(file_);
    if (file_ >= 0 || pending_) ::unlink(temporary_.c_str());
  }

  bool write(std::string_view content) {
    if (file_ < 0) return false;
    // mkstemp makes a private file; an ordinary one has the mode of the old file or the umask's.
    struct stat old {};
    const mode_t mask = ::umask(0);
    ::umask(mask);
    const mode_t mode = ::stat(path_.c_str(), &old) == 0 ? old.st_mode & 07777 : 0666 & ~mask;
    if (!write_all(file_, content) || ::fchmod(file_, mode) != 0) return false;
    pending_ = true;
    return ::close(std::exchange(file_, -1)) == 0;
  }

  bool publish() {
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) return false;
    pending_ = false;
    return true;
  }

 private:
  std::string path_;
  std::string temporary_;
  int file_ = -1;
  bool pending_ = false;
};

bool write_special(const std::string& path, std::string_view content) {
  const int file = ::open(path.c_str(), O_WRONLY);
  if (file < 0) return false;
  const bool written = write_all(file, content);
  return ::close(file) == 0 && written;
}

int report_unwritten(const std::string& path) {
  return report_errors({{ErrorCode::kIo, "cannot be written: " + reason(), path, "", ""}});
}

}  // namespace

void Output::plan(const std::string& flag, const std::string& path) {
  if (!path.empty()) targets_.push_back({flag, path});
}

void Output::protect(const std::string& flag, const std::string& path) {
  std::error_code none;
  if (std::filesystem::is_regular_file(path, none)) inputs_.push_back({flag, path});
}

Errors Output::check() const {
  Errors errors;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const Target& target = targets_[i];
    if (const auto why = why_not_writable(target.path)) {
      errors.push_back({ErrorCode::kIo,
                        fmt::format("'{}' cannot be written: {}", target.path, *why), "",
                        target.flag, "name a file in a folder that you may write to"});
    }
    for (const Target& input : inputs_) {
      if (is_special(target.path) || target_of(input.path) != target_of(target.path)) continue;
      errors.push_back(
          {ErrorCode::kIllegal,
           fmt::format("'{}' is read as {} and would be lost", target.path, input.flag), "",
           target.flag, "name another file"});
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (!is_special(target.path) && target_of(targets_[j].path) == target_of(target.path)) {
        errors.push_back({ErrorCode::kIllegal,
                          fmt::format("'{}' is also the file of {}", target.path, targets_[j].flag),
                          "", target.flag, "name two files"});
      }
    }
  }
  return errors;
}

void Output::set_file(const std::string& path, std::string content) {
  files_.push_back({path, std::move(content)});
}

void Output::set_main(const OutputOptions& options, std::string content) {
  if (options.file.empty()) {
    standard_output_ = std::move(content);
  } else {
    set_file(options.file, std::move(content));
  }
}

int Output::commit() const {
  std::vector<TemporaryFile> temporary;
  for (const File& file : files_) {
    if (is_special(file.path)) {
      if (!write_special(file.path, file.content)) return report_unwritten(file.path);
      continue;
    }
    temporary.emplace_back(file.path);
    if (!temporary.back().write(file.content)) return report_unwritten(file.path);
  }
  for (TemporaryFile& file : temporary) {
    if (!file.publish()) return report_unwritten("output");
  }
  if (!write_all(STDOUT_FILENO, standard_output_)) {
    fmt::print(stderr, "error: standard output: {}\n", reason());
    return kInternalError;
  }
  return kOk;
}

}  // namespace stepcast::cli
