// SPDX-License-Identifier: Apache-2.0
// Tells a user what can be done about a file or folder that the system would not let be written.
#pragma once

#include <string>

namespace stepcast {

// `reason` is errno. A full disk asks for room; any other reason for `otherwise`.
std::string hint_of_failed_write(int reason, const std::string& otherwise);

}  // namespace stepcast
