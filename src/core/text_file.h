// SPDX-License-Identifier: Apache-2.0
// Reads a whole file as text.
#pragma once

#include <string>

#include "core/result.h"

namespace stepcast {

// An error says that it cannot be opened or is a folder. An empty file gives empty text.
Result<std::string> read_text_file(const std::string& file);

}  // namespace stepcast
