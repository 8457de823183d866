// SPDX-License-Identifier: Apache-2.0
// The file of thresholds (format 1; docs/acceptance.md), and the script that measures them.
#pragma once

#include <string>

#include "acceptance/thresholds.h"
#include "core/text/written.h"

namespace stepcast {

Written threshold_file(const Thresholds& thresholds);
std::string threshold_script(const Thresholds& thresholds);  // of thresholds just made

// Whether the text says that it is such a file.
bool is_threshold_file(const std::string& text);
// Errors name the key.
Result<Thresholds> read_threshold_file(const std::string& text, const std::string& file);

}  // namespace stepcast
