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

// A line of a rank without its newline. A rank may have left a line of its own unfinished when a
// report came. What looks like a report and is not well-formed is output.
RankLine read_rank_line(std::string_view line);

}  // namespace stepcast
