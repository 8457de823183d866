// SPDX-License-Identifier: Apache-2.0
// The file that --baseline names, for `check` and `validate`.
#pragma once

#include <optional>
#include <string>

#include "core/result.h"

namespace stepcast::cli {

// Returns its text; nothing if an update makes it for the first time.
Result<std::optional<std::string>> read_baseline_file(const std::string& file, bool update);

}  // namespace stepcast::cli
