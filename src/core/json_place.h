// SPDX-License-Identifier: Apache-2.0
// Finds where in a text of JSON a value stands.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepcast {

// The line, from 1, on which the value at `path` begins: "rows[3]", "[0].rows[17][2]". The text is
// JSON. A path that leads nowhere gets the line of the last value on it.
std::int64_t line_of(std::string_view text, std::string_view path);

}  // namespace stepcast
