// SPDX-License-Identifier: Apache-2.0
// JSON for files that people review: what changes is a line of the difference.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace stepcast {

// An object of plain values that fits stands on one line, of others each key. Ends with a line end;
// bytes that are no UTF-8 are replaced.
std::string json_lines(const nlohmann::ordered_json& value);

}  // namespace stepcast
