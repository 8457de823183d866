// SPDX-License-Identifier: Apache-2.0
// Finished results go here when their files cannot be written: a command that has computed for
// minutes must not end with nothing.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace stepcast::cli {

struct FinishedResult {
  std::string name;  // of its file, without folders
  std::string content;
};

// Writes all of them to a new folder of TMPDIR, /tmp, /var/tmp or /dev/shm, the first that has
// room. Where none has, they go to standard output. Standard error says where they are.
void keep_elsewhere(const std::vector<FinishedResult>& results);

// One file, atomically; kept elsewhere when that fails.
Result<void> write_or_keep(const std::string& path, const std::string& content);

}  // namespace stepcast::cli
