// SPDX-License-Identifier: Apache-2.0
#include "core/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include "core/carried_files.h"
#include "core/input_lines.h"
#include "core/json_tree.h"
#include "core/packed_json.h"
#include "core/read_roots.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 16;

Error absent(const std::string& file) {
  return {ErrorCode::kNotFound, "cannot be read", file, "", "check the path"};
}

// Says by errno that there is no such file, or that the system does not let it be read.
Error unreadable(const std::string& file) {
  if (errno == ENOENT || errno == ENOTDIR) return absent(file);
  return {ErrorCode::kIo, fmt::format("cannot be read: {}", std::strerror(errno)), file, "", ""};
}

Error outside(const std::string& file) {
  return {ErrorCode::kNotFound, "lies outside the folders that may be read", file, "",
          "a shipped name, or a file below --root"};
}

Error too_large(const std::string& file, const ReadLimits& limits) {
  return {ErrorCode::kBadValue, fmt::format("is larger than {} MiB", limits.most_bytes >> 20), file,
          "", "no file of this kind is that large: check the path"};
}

// Says of its first bytes why a file is not text that is read here.
std::optional<Error> no_text(std::string_view head, const std::string& file) {
  if (head.starts_with("\x1f\x8b")) {
    return Error{ErrorCode::kFormat, "is packed by gzip", file, "", "unpack it first: gunzip -k"};
  }
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff")) {
    return Error{ErrorCode::kFormat, "is text in UTF-16", file, "",
                 "write it in UTF-8: iconv -f UTF-16 -t UTF-8"};
  }
  return std::nullopt;
}

// Whether something can be read from the pipe, or its last writer has gone.
bool wait_for(int pipe, double most_s) {
  pollfd waited{pipe, POLLIN, 0};
  int found = 0;
  do {
    found = ::poll(&waited, 1, static_cast<int>(most_s * 1000));
  } while (found < 0 && errno == EINTR);
  return found > 0;
}

constexpr int kToRead = O_RDONLY | O_CLOEXEC | O_NOCTTY |
                        O_NONBLOCK;  // else a pipe without a writer would hold the program here

class OpenFile {
 public:
  explicit OpenFile(const std::string& file) {
    const auto name = name_to_read(file);
    if (!name) {
      refused_ = {outside(file)};
    } else if (reads_are_bound()) {
      open_below_roots(file, *name);
    } else {
      descriptor_ = ::open(name->c_str(), kToRead);
      if (descriptor_ < 0) refused_ = {unreadable(file)};
    }
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int descriptor() const { return descriptor_; }
  const Errors& refused() const { return refused_; }

 private:
  // To open a pipe or a device does something to it, so what stands there is looked at first.
  void open_below_roots(const std::string& file, const std::string& name) {
    const int place = ::open(name.c_str(), O_PATH | O_CLOEXEC);
    if (place < 0) {
      const Error failed = unreadable(file);  // while errno is that of open
      refused_ = {may_name(file) ? failed : outside(file)};
      return;
    }
    struct stat status = {};
    if (!may_read(place)) {
      refused_ = {outside(file)};
    } else if (::fstat(place, &status) != 0) {
      refused_ = {unreadable(file)};
    } else if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
      refused_ = {{ErrorCode::kBadValue, "is a pipe or a device", file, "", "name a file"}};
    } else {
      descriptor_ = ::open(fmt::format("/proc/self/fd/{}", place).c_str(), kToRead);
      if (descriptor_ < 0) refused_ = {unreadable(file)};
    }
    ::close(place);
  }

  int descriptor_ = -1;
  Errors refused_;
};

// A file or a pipe, and no larger than it may be.
Result<struct stat> readable(int descriptor, const std::string& file, const ReadLimits& limits) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) return failure(unreadable(file));
  if (S_ISDIR(status.st_mode)) return failure(absent(file));
  if (!S_ISFIFO(status.st_mode) && !S_ISREG(status.st_mode)) {
    return failure({ErrorCode::kBadValue, "is a device", file, "", "name a file or a pipe"});
  }
  if (status.st_size > limits.most_bytes) return failure(too_large(file, limits));
  return status;
}

Error silent(const std::string& file, bool is_pipe, const ReadLimits& limits) {
  return {ErrorCode::kBadValue,
          fmt::format("{}sent nothing for {} s", is_pipe ? "is a pipe that " : "has ",
                      limits.silence_s),
          file, "",
          is_pipe ? "start the command that writes into it" : "name a file that has an end"};
}

// Reads once, as much as there is; 0 at the end.
Result<std::size_t> read_some(int descriptor, bool is_pipe, std::span<char> to,
                              const std::string& file, const ReadLimits& limits) {
  bool waits = is_pipe;
  while (true) {
    if (waits && !wait_for(descriptor, limits.silence_s)) {
      return failure(silent(file, is_pipe, limits));
    }
    const ssize_t got = ::read(descriptor, to.data(), to.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    // Files of the kernel (/proc/kmsg) have more to come, too.
    if (errno == EAGAIN) waits = true;
    if (errno != EINTR && errno != EAGAIN) return failure(unreadable(file));
  }
}

}  // namespace

Result<std::string> read_text_file(const std::string& file, const ReadLimits& limits) {
  if (is_carried(file)) {
    if (const CarriedFile* found = carried_file(file)) {
      return found->is_packed ? json_text(unpack_json(found->bytes)) : std::string(found->bytes);
    }
    return failure({ErrorCode::kNotFound, "is not among the files inside the program", file, "",
                    "name a file, or what stepcast show lists"});
  }
  const OpenFile opened(file);
  if (!opened.refused().empty()) return failure(opened.refused());
  return read_open_file(opened.descriptor(), file, limits);
}

Result<void> read_lines(const std::string& file, std::size_t longest, const ReadLimits& limits,
                        const std::function<void(const FileLine&)>& take) {
  const OpenFile opened(file);
  if (!opened.refused().empty()) return failure(opened.refused());
  const auto status = readable(opened.descriptor(), file, limits);
  if (!status) return failure(status.error());
  InputLines lines(opened.descriptor(), longest, InputLines::Ends::kCarriageReturnsToo,
                   limits.silence_s);
  const bool is_pipe = S_ISFIFO(status->st_mode);
  if (is_pipe && !wait_for(opened.descriptor(), limits.silence_s)) {
    return failure(silent(file, is_pipe, limits));
  }
  std::string line;
  std::int64_t bytes = 0;
  for (auto kind = lines.next(line); kind != InputLines::Kind::kEnd; kind = lines.next(line)) {
    if (bytes == 0) {
      if (auto refused = no_text(line, file)) return failure(std::move(*refused));
    }
    bytes += static_cast<std::int64_t>(line.size()) + 1;
    if (bytes > limits.most_bytes) return failure(too_large(file, limits));
    const bool is_too_long = kind == InputLines::Kind::kTooLong;
    take({is_too_long ? std::string_view() : line, lines.was_ended(), is_too_long});
  }
  if (lines.fell_silent()) return failure(silent(file, is_pipe, limits));
  if (lines.failed() != 0) {
    errno = lines.failed();
    return failure(unreadable(file));
  }
  return {};
}

Result<void> read_pieces(const std::string& file, const ReadLimits& limits,
                         const std::function<bool(std::string_view)>& take) {
  const OpenFile opened(file);
  if (!opened.refused().empty()) return failure(opened.refused());
  const auto status = readable(opened.descriptor(), file, limits);
  if (!status) return failure(status.error());
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::string piece(kPiece, '\0');
  std::int64_t bytes = 0;
  while (true) {
    const auto got = read_some(opened.descriptor(), S_ISFIFO(status->st_mode), piece, file, limits);
    if (!got) return failure(got.error());
    if (*got == 0) return {};
    bytes += static_cast<std::int64_t>(*got);
    if (bytes > limits.most_bytes) return failure(too_large(file, limits));
    if (!take(std::string_view(piece).substr(0, *got))) return {};
  }
}

Result<std::string> read_open_file(int descriptor, const std::string& file,
                                   const ReadLimits& limits) {
  const auto status = readable(descriptor, file, limits);
  if (!status) return failure(status.error());
  std::string out;
  std::size_t size = 0;
  while (true) {
    // One byte more than the file has, so that its end is seen at once.
    const auto known = static_cast<std::size_t>(status->st_size) + 1;
    out.resize(std::max(known, size + kBlock));
    const auto got = read_some(descriptor, S_ISFIFO(status->st_mode), std::span(out).subspan(size),
                               file, limits);
    if (!got) return failure(got.error());
    if (*got == 0) break;
    size += *got;
    if (static_cast<std::int64_t>(size) > limits.most_bytes) {
      return failure(too_large(file, limits));
    }
  }
  out.resize(size);
  if (!limits.may_be_packed) {
    if (auto refused = no_text(out, file)) return failure(std::move(*refused));
  }
  return out;
}

}  // namespace stepcast
