// SPDX-License-Identifier: Apache-2.0
// Every rank does this in one step: the object that the simulator replays and the executor runs.
//
// A *block* is a piece of the model with its operations (embedding, a decoder layer, head and loss,
// the optimizer), lowered once however often it occurs. A *chunk* is a run of blocks on a stage. A
// *role* is the instruction list that all ranks of one pipeline stage share, in host issue order;
// peers are relative (next stage, the rank's data group), so it holds for any rank of the stage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/quantity.h"
#include "layout/axis_group.h"
#include "operation/memory_parts.h"
#include "program/block.h"
#include "program/block_kind.h"
#include "program/element_range.h"
#include "program/instruction.h"
#include "schedule/pass.h"

namespace stepcast {

struct Scenario;

struct Chunk {
  std::int64_t model_chunk;     // its place in model order
  std::int64_t first_layer;     // decoder layers before it
  std::vector<BlockId> blocks;  // in execution order
};

// The flat parameters of a role that one group of ranks reduces and shards. They lie in one piece,
// so that a range of them belongs to one group.
struct FlatStretch {
  AxisGroup group;
  ElementRange range;
  std::vector<std::vector<std::int64_t>> offsets;  // by chunk and block: where its parameters begin
};

struct Role {
  std::int32_t stage;
  std::vector<Chunk> chunks;
  std::vector<FlatStretch> stretches;  // one after the other, by group
  std::vector<Instruction> instructions;
  MemoryParts persistent{};     // parameters, gradients, optimizer states, fixed buffers
  std::int64_t parameters = 0;  // trained elements on one rank before ZeRO
  std::int64_t in_fp8 = 0;      // as many of them are read by products in fp8 or fp4
  std::int64_t in_fp4 = 0;      // and of these by products in fp4
  std::int64_t balancing = 0;   // trained elements that a BalanceUpdate moves
  ByteCount on_host = 0;        // offloaded states in host memory, for the whole run

  const FlatStretch* stretch(AxisGroup group) const;  // null: nothing of this group is trained
  // Which group reduces and shards a range; the data group where the range is empty.
  AxisGroup group_of(ElementRange range) const;
};

struct Program {
  std::vector<Block> blocks;
  std::vector<Role> roles;  // by stage
  const Block& block(BlockId id) const { return blocks[id.index()]; }
};

// Lowers a scenario. Never fails for a scenario that read_scenario accepted.
Program lower(const Scenario& scenario);
// Takes the order of every stage as given, instead of the schedule's: check_orders() accepts them.
// If one has input gradients and weight gradients apart, all blocks are lowered so.
Program lower(const Scenario& scenario, const std::vector<StageOrder>& orders);

}  // namespace stepcast
