// SPDX-License-Identifier: Apache-2.0
#include "fuzz/readers.h"
#include "launch/rank_report_line.h"

namespace stepcast::fuzz {

void read_line_of_rank(std::string_view text) { read_rank_line(text); }

}  // namespace stepcast::fuzz
