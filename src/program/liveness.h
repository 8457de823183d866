// SPDX-License-Identifier: Apache-2.0
// Births and deaths of a block's buffers: a buffer is born at its first write and dies after its
// last use over forward then backward, as autograd frees what no later operation reads. An
// operation beside the others uses its buffers until somebody waits for it
// (program/block_events.h). The input is born outside, the output and the input gradient live on
// outside.
#pragma once

#include <vector>

#include "program/program.h"

namespace stepcast {

// What the lowering of a block ends with: places its events (program/block_events.h) and fills
// forward_memory and backward_memory.
void finish_block(Block& block);

// By operation: buffers born before it and dead after it.
struct OperationLives {
  std::vector<BufferId> births, deaths;
};
struct BlockLives {
  std::vector<OperationLives> forward, backward;
};
BlockLives trace_lives(const Block& block);

}  // namespace stepcast
