// SPDX-License-Identifier: Apache-2.0
// A table as it stands in finished text, read back and set anew in fewer columns.
#pragma once

#include <string>
#include <vector>

namespace stepcast {

// Whether titles and a rule of "─", which names the columns' places, begin at this line.
bool begins_table(const std::vector<std::string>& lines, std::size_t at);
// The first line behind the table: rows, and what stands below each, begin at a column.
std::size_t end_of_table(const std::vector<std::string>& lines, std::size_t begin);
std::vector<std::string> fitted_table(const std::vector<std::string>& lines, std::size_t width);

}  // namespace stepcast
