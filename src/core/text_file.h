// SPDX-License-Identifier: Apache-2.0
// A file whole, as text.
#pragma once

#include <string>

#include "core/result.h"

namespace stepcast {

// Errors: it cannot be opened, or is none (a folder). An empty one is empty text.
Result<std::string> read_text_file(const std::string& file);

}  // namespace stepcast
