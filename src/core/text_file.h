// SPDX-License-Identifier: Apache-2.0
// Reads a whole file as text. Every file that somebody else wrote is read here.
#pragma once

#include <string>

#include "core/limits.h"
#include "core/result.h"

namespace stepcast {

struct ReadLimits {
  std::int64_t most_bytes = kMostFileBytes;
  double silence_s = kLongestSilence_s;  // of a pipe
};

// Files and pipes (as in `<(command)`) are read. An error says that it cannot be opened, is a
// folder or a device, is too large, or is a pipe into which nobody writes; kIo alone says that the
// file is there and the system does not let it be read. An empty file gives empty text.
Result<std::string> read_text_file(const std::string& file, const ReadLimits& limits = {});

// The rest of an open file or pipe; `file` is its name in errors.
Result<std::string> read_open_file(int descriptor, const std::string& file,
                                   const ReadLimits& limits = {});

}  // namespace stepcast
