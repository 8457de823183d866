// SPDX-License-Identifier: Apache-2.0
// The reading end of rank_report.h.
#pragma once

#include <optional>
#include <string_view>

#include "launch/rank_report.h"

namespace stepcast {

struct RankLine {
  std::string_view output;           // what stands before a report, or the whole line
  std::optional<RankReport> report;  // none: the line is only output
};

// Reads a line of a rank, without its newline. A report may follow an unfinished line of the rank's
// own. Whatever looks like a report but is not well-formed counts as output.
RankLine read_rank_line(std::string_view line);

}  // namespace stepcast
