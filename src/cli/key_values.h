// SPDX-License-Identifier: Apache-2.0
// Lists on the command line.
#pragma once

#include <string>
#include <vector>

namespace stepcast::cli {

// "1,2,{"a":[3,4]}" at its outermost commas.
std::vector<std::string> split_values(const std::string& text);

}  // namespace stepcast::cli
