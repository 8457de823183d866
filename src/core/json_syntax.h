// SPDX-License-Identifier: Apache-2.0
// Says what is wrong with a text that is not JSON, for people who do not write parsers.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace stepcast {

// "not valid JSON: line 3, column 7: JSON has no comments". `error` is what the parser threw.
std::string why_not_json(std::string_view text, const std::exception& error);

}  // namespace stepcast
