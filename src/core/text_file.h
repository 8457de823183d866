// SPDX-License-Identifier: Apache-2.0
// Reads a file as text, whole or line by line. Every file that somebody else wrote is read here.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/limits.h"
#include "core/result.h"

namespace stepcast {

struct ReadLimits {
  std::int64_t most_bytes = kMostFileBytes;
  double silence_s = kLongestSilence_s;  // of a pipe
  bool may_be_packed = false;            // the caller unpacks it
};

// Files and pipes (as in `<(command)`) are read. An error says that it cannot be opened, is a
// folder or a device, is too large, or is a pipe into which nobody writes; kIo alone says that the
// file is there and the system does not let it be read. An empty file gives empty text. Text that
// gzip packed, or that is in UTF-16, is refused by that name.
Result<std::string> read_text_file(const std::string& file, const ReadLimits& limits = {});

// The rest of an open file or pipe; `file` is its name in errors.
Result<std::string> read_open_file(int descriptor, const std::string& file,
                                   const ReadLimits& limits = {});

// A line, and whether a line feed or a carriage return ended it. A line that is too long is
// dropped, and comes as nothing.
struct FileLine {
  std::string_view text;
  bool is_ended = true;
  bool is_too_long = false;
};

// Calls `take` for each line of a file that is too large to be held, or of a pipe.
Result<void> read_lines(const std::string& file, std::size_t longest, const ReadLimits& limits,
                        const std::function<void(const FileLine&)>& take);

// Calls `take` for each piece of a file that is too large to be held, or of a pipe, until it says
// that it has seen enough.
Result<void> read_pieces(const std::string& file, const ReadLimits& limits,
                         const std::function<bool(std::string_view)>& take);

}  // namespace stepcast
