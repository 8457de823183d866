// SPDX-License-Identifier: Apache-2.0
// Settings that a tool prints into its log: arguments in lines, or an object over several.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepcast {

// How many braces of a line open and do not close; those in quotes do not count.
std::int64_t depth_of_braces(std::string_view line);

// The name of the first setting that two texts of lines state differently, but for what every start
// of a run chooses anew; "" where there is none.
std::string first_difference(std::string_view one, std::string_view other);

// A dictionary as Python prints it, as JSON: quotes, True, False, None. JSON stays as it is.
std::string json_of_python(std::string_view text);

}  // namespace stepcast
