// SPDX-License-Identifier: Apache-2.0
// A piece of a model with its parameters, and the operations of its passes (program/program.h).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/quantity.h"
#include "layout/axis_group.h"
#include "memory/frozen_weights.h"
#include "operation/buffer.h"
#include "operation/memory_parts.h"
#include "operation/operation.h"
#include "program/block_kind.h"
#include "schedule/pass.h"

namespace stepcast {

// Tensor parallelism cuts a parameter by rows, by columns, or not at all.
enum class Cut { kNone, kRows, kColumns };
enum class Initial { kNormal, kOnes, kZeros };
// Whether a weight is trained, or frozen in 16 bits or more, in fp8, or in four bits.
enum class WeightStorage { kTrained, kFrozen, kFp8, kFourBit };

// One matrix, or a vector as one column; row-major, sizes on this rank before ZeRO sharding.
struct Parameter {
  const char* name;  // a literal
  std::int64_t rows;
  std::int64_t columns;
  Cut cut = Cut::kNone;
  Initial initial = Initial::kNormal;
  // The rows of each part that is cut by itself (query, key, value; gate and linear), then zeros;
  // of one expert.
  std::array<std::int64_t, 3> parts{};
  bool borrowed = false;  // the embedding block's table: no memory, gradient or update of its own
  WeightStorage storage = WeightStorage::kTrained;
  bool is_table = false;  // of tokens: embedding and head may share it
  bool is_copy = false;   // of the embedding's table, for prediction modules on another stage
  bool balances = false;  // the load of experts moves it (BalanceUpdate), no optimizer does
  bool in_fp8 = false;    // the products with it read fp8, or fp4
  bool in_fp4 = false;    // and so fp4
  // The ranks that hold the same elements: its gradient is reduced over them, and ZeRO shards it
  // among them.
  AxisGroup replicas = AxisGroup::kData;
  std::int64_t copies = 1;  // equal matrices below each other: of experts
  std::int64_t elements() const { return rows * columns; }
};

// Elements that this rank holds of a block's trained parameters before any ZeRO sharding.
struct BlockParameters {
  std::int64_t sharded = 0;     // cut by tp, or experts, which have data ranks of their own
  std::int64_t replicated = 0;  // whole on each tp rank (norms, router, row-parallel biases)
  std::int64_t in_fp8 = 0;      // as many of both are read by products in fp8 or fp4
  std::int64_t in_fp4 = 0;      // and of these by products in fp4
  std::int64_t total() const { return sharded + replicated; }
};

// Trained elements of a block that one group of ranks reduces and shards.
struct GroupElements {
  AxisGroup group;
  std::int64_t elements = 0;
};

// Memory while a list of operations runs, relative to its start: what it leaves behind, its peak,
// the parts then, and how far each part falls. `lent` are the buffers that collectives read and
// that die in it: where the library records streams, the allocator has them back only when the host
// knows that the collective has ended.
struct MemoryTrace {
  MemoryParts after{};
  MemoryParts at_peak{};
  MemoryParts lowest{};  // of each part by itself, at most zero
  ByteCount peak = 0;
  ByteCount lent = 0;
};

// The operations of one pass over a block, and the memory that they take and leave.
struct BlockPass {
  std::vector<Operation> operations;
  MemoryTrace memory;  // births and deaths by liveness (program/liveness.h)
};

// How a block's backward is lowered: as one pass, or as input gradients and weight gradients apart.
enum class BackwardForm { kWhole, kSplit };

struct Block {
  BlockKind kind = BlockKind::kLayer;
  BackwardForm form = BackwardForm::kWhole;
  std::vector<Parameter> weights;       // in the order in which the flat parameters hold them
  BlockParameters parameters;           // the sum of the trained ones
  std::vector<GroupElements> by_group;  // the trained ones by group, ascending
  FrozenWeights frozen;                 // and of the others
  std::vector<Buffer> buffers;
  // By Pass; those that the form does not have are empty. Recomputed operations come first in the
  // pass that needs them.
  std::array<BlockPass, kPasses> passes;
  BufferId input, output;  // activations handed from block to block
  BufferId input_gradient, output_gradient;

  BlockPass& pass(Pass which) { return passes[static_cast<std::size_t>(which)]; }
  const BlockPass& pass(Pass which) const { return passes[static_cast<std::size_t>(which)]; }
};

// The passes over a block of this form, in the order in which one micro-batch meets them.
std::span<const Pass> passes_of(BackwardForm form);
// The pass behind which nothing of a micro-batch is left in a block.
inline Pass last_pass_of(BackwardForm form) { return passes_of(form).back(); }

}  // namespace stepcast
