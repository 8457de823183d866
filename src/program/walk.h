// SPDX-License-Identifier: Apache-2.0
// The one way to the operations of a program: those of its blocks, and those that a role's runs
// run. Simulator, executor, calibrators and the planner's bound go it together: a new kind of pass
// is added here.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "program/program.h"

namespace stepcast {

// Operations that run when a pass comes to a block. A block outside the chunks has a forward alone.
inline const std::vector<Operation>& operations_of(const Block& block, Pass pass) {
  return block.pass(pass).operations;
}
inline const MemoryTrace& memory_of(const Block& block, Pass pass) {
  return block.pass(pass).memory;
}

// visit(const Operation&), of all passes of a block in their order.
template <class Visit>
void for_each_operation(const Block& block, Visit&& visit) {
  for (const BlockPass& pass : block.passes) {
    for (const Operation& operation : pass.operations) visit(operation);
  }
}
// Visits the operations of all blocks, each block once, however often it occurs.
template <class Visit>
void for_each_operation(const Program& program, Visit&& visit) {
  for (const Block& block : program.blocks) for_each_operation(block, visit);
}

// visit(const Block&), of a role's chunks: as often as a block occurs there.
template <class Visit>
void for_each_block(const Program& program, const Role& role, Visit&& visit) {
  for (const Chunk& chunk : role.chunks) {
    for (const BlockId id : chunk.blocks) visit(program.block(id));
  }
}
std::vector<BlockId> distinct_blocks(const Role& role);  // those of its chunks, ascending

// visit(const Operation&), of these blocks: each once, however often it occurs.
template <class Visit>
void for_each_operation(const Program& program, const Role& role, Visit&& visit) {
  for (const BlockId id : distinct_blocks(role)) for_each_operation(program.block(id), visit);
}

// A pass over one block of a chunk, or a block outside the chunks.
struct BlockVisit {
  BlockId block;
  Pass pass;
  std::optional<std::int32_t> index;  // in its chunk
};

// visit(BlockVisit), in the order in which the blocks run.
template <class Visit>
void for_each_block(const Role& role, const RunPass& run, Visit&& visit) {
  const std::vector<BlockId>& blocks = role.chunks[static_cast<std::size_t>(run.slot.chunk)].blocks;
  const bool forward = run.slot.pass == Pass::kForward;
  for (std::int32_t i = run.block_begin; i < run.block_end; ++i) {
    const std::int32_t at = forward ? i : run.block_end - 1 - (i - run.block_begin);
    visit(BlockVisit{blocks[static_cast<std::size_t>(at)], run.slot.pass, at});
  }
}
template <class Visit>
void for_each_block(const Role&, const RunBlock& run, Visit&& visit) {
  visit(BlockVisit{run.block, Pass::kForward, std::nullopt});
}
template <class Visit>
void for_each_block(const Role& role, const Instruction& what, Visit&& visit) {  // none: no run
  if (const auto* pass = what.as<RunPass>()) for_each_block(role, *pass, visit);
  if (const auto* block = what.as<RunBlock>()) for_each_block(role, *block, visit);
}

// visit(const Operation&, BlockVisit), in the order in which they run.
template <class Visit>
void for_each_operation(const Program& program, const Role& role, const Instruction& what,
                        Visit&& visit) {
  for_each_block(role, what, [&](const BlockVisit& at) {
    for (const Operation& one : operations_of(program.block(at.block), at.pass)) visit(one, at);
  });
}

}  // namespace stepcast
