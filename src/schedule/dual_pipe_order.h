// SPDX-License-Identifier: Apache-2.0
// The steps that DualPipe and DualPipeV share (deepseek-ai/DualPipe 3da1bbea, dualpipe.py and
// dualpipev.py): a stage pairs the forward of one of its two chunks with the backward of the other.
// Passes of a pair stand one behind the other here; what a framework overlaps inside a pair is not
// in an order.
#pragma once

#include <array>

#include "schedule/pass.h"

namespace stepcast {

struct DualPipePlace {
  std::int64_t ahead = 0;   // stages that micro-batches of the first chunk have met before
  std::int64_t behind = 0;  // those on their way to where it turns, or meets the other direction
  std::int64_t micro_batches = 1;              // of each chunk
  std::array<std::int64_t, 2> first = {0, 0};  // of each chunk
};

StageOrder dual_pipe_order(const DualPipePlace& place);

}  // namespace stepcast
