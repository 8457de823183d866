// SPDX-License-Identifier: Apache-2.0
// Births and deaths of a block's buffers: a buffer is born at its first write and dies after its
// last use over forward then backward, as autograd frees what no later operation reads. The input
// is born outside, the output and the input gradient live on outside.
#pragma once

#include <vector>

#include "program/program.h"

namespace stepcast {

// Fills forward_memory and backward_memory of `block`.
void trace_memory(Block& block);

// By operation: buffers born before it and dead after it.
struct OperationLives {
  std::vector<BufferId> births, deaths;
};
struct BlockLives {
  std::vector<OperationLives> forward, backward;
};
BlockLives trace_lives(const Block& block);

}  // namespace stepcast
