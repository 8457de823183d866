// SPDX-License-Identifier: Apache-2.0
// Reads the lines of tables that others wrote. What this program writes is in core/text/escape.h.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

// The cells of a line (RFC 4180), without their quotes: the first `most` of them.
std::vector<std::string> cells_of_csv_line(
    std::string_view line, std::size_t most = std::numeric_limits<std::size_t>::max());

}  // namespace stepcast
