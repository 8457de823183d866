// SPDX-License-Identifier: Apache-2.0
// Births and deaths of a block's buffers: a buffer is born at its first write and dies after its
// last use over all passes in their order, as autograd frees what no later operation reads: what
// weight gradients read lives until their pass. An operation beside the others uses its buffers
// until the computing stream knows that it has ended (program/block_events.h). The input is born
// outside, the output and the input gradient live on outside.
#pragma once

#include <array>
#include <vector>

#include "operation/buffer.h"
#include "schedule/pass.h"

namespace stepcast {

struct Block;

// Ends the lowering of a block: places its events (program/block_events.h), checks the lives of its
// buffers (program/check_lives.h) and fills the memory of its passes.
void finish_block(Block& block);

// By operation: buffers born before it and dead after it.
struct OperationLives {
  std::vector<BufferId> births, deaths;
};
struct BlockLives {
  std::array<std::vector<OperationLives>, kPasses> passes;  // by Pass
  const std::vector<OperationLives>& pass(Pass which) const {
    return passes[static_cast<std::size_t>(which)];
  }
};
BlockLives trace_lives(const Block& block);

}  // namespace stepcast
