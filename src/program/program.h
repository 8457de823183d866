// SPDX-License-Identifier: Apache-2.0
// What every rank does in one step: the object that the simulator replays and the executor runs.
//
// A *block* is a piece of the model with its operations (embedding, a decoder layer, head and loss,
// the optimizer), lowered once however often it occurs. A *chunk* is a run of blocks on a stage. A
// *role* is the instruction list that all ranks of one pipeline stage share, in host issue order;
// peers are relative (next stage, the rank's data group), so it holds for any rank of the stage.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "layout/rank_grid.h"
#include "layout/scenario.h"
#include "memory/frozen_weights.h"
#include "operation/operation.h"
#include "schedule/schedule.h"

namespace stepcast {

using BlockId = Id<struct BlockTag>;

// What tensor parallelism cuts of a parameter.
enum class Cut { kNone, kRows, kColumns };
enum class Initial { kNormal, kOnes, kZeros };
// Trained, or as it came: in the precision of training or in four bits.
enum class WeightStorage { kTrained, kFrozen, kFourBit };

// One matrix, or a vector as one column; row-major, sizes on this rank before ZeRO sharding.
struct Parameter {
  const char* name;  // a literal
  std::int64_t rows;
  std::int64_t columns;
  Cut cut = Cut::kNone;
  Initial initial = Initial::kNormal;
  // Rows of the parts that are cut each for itself (query, key, value; gate and linear); zeros
  // behind the last.
  std::array<std::int64_t, 3> parts{};
  bool borrowed = false;  // the embedding block's table: no memory, gradient or update of its own
  WeightStorage storage = WeightStorage::kTrained;
  // The ranks that hold the same elements: its gradient is reduced over them, and ZeRO shards it
  // among them.
  AxisGroup replicas = AxisGroup::kData;
  std::int64_t elements() const { return rows * columns; }
};

// Elements that this rank holds of a block's trained parameters before any ZeRO sharding.
struct BlockParameters {
  std::int64_t sharded = 0;     // cut by tp
  std::int64_t replicated = 0;  // whole on each tp rank (norms, router, row-parallel biases)
  std::int64_t total() const { return sharded + replicated; }
};

// Trained elements of a block that one group of ranks reduces and shards.
struct GroupElements {
  AxisGroup group;
  std::int64_t elements = 0;
};

// Bytes by MemoryCategory.
using MemoryParts = std::array<ByteCount, kMemoryCategories>;
ByteCount total(const MemoryParts& parts);

// Memory while a list of operations runs, relative to its start: what it leaves behind, its peak,
// the operation at which the peak stands, and the parts then.
struct MemoryTrace {
  MemoryParts after{};
  MemoryParts at_peak{};
  ByteCount peak = 0;
  std::int32_t peak_operation = -1;
};

struct Block {
  std::string name;
  std::vector<Parameter> weights;       // in the order in which the flat parameters hold them
  BlockParameters parameters;           // the sum of the trained ones
  std::vector<GroupElements> by_group;  // the same by group, ascending
  FrozenWeights frozen;                 // and of the others
  std::vector<Buffer> buffers;
  std::vector<Operation> forward;
  std::vector<Operation> backward;  // recomputed operations first
  BufferId input, output;           // activations handed from block to block
  BufferId input_gradient, output_gradient;
  MemoryTrace forward_memory;  // births and deaths by liveness (program/liveness.h)
  MemoryTrace backward_memory;
};

struct Chunk {
  std::int64_t model_chunk;     // its place in model order
  std::int64_t first_layer;     // decoder layers before it
  std::vector<BlockId> blocks;  // in execution order
};

enum class Stream {
  kCompute,
  kGather,
  kReduce,
  kSendForward,
  kReceiveForward,
  kSendBackward,
  kReceiveBackward,
  kHost
};
inline constexpr int kStreams = 8;
const char* name_of(Stream stream);

struct ElementRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

enum class InstructionKind { kRun, kCollective, kSend, kReceive, kHostSync };

struct Instruction {
  InstructionKind kind;
  Stream stream;

  // kRun: blocks [block_begin, block_end) of a chunk; backward runs them last to first. The
  // optimizer block has chunk -1 and its id in block_begin.
  Pass pass = Pass::kForward;
  Phase phase = Phase::kForward;  // what its time counts as
  std::int32_t chunk = -1;
  std::int32_t micro_batch = -1;
  std::int32_t block_begin = 0;
  std::int32_t block_end = 0;

  // kCollective on the group of `group`; kSend and kReceive to the stage `peer` of the same
  // pipeline, matched by (sender, receiver, tag).
  CollectiveKind collective = CollectiveKind::kAllReduce;
  AxisGroup group = AxisGroup::kData;
  std::int32_t peer = -1;
  std::int64_t tag = 0;
  ByteCount bytes = 0;
  DataType type = DataType::kBf16;
  std::int32_t pieces = 1;  // issued as so many equal collectives, one after the other
  std::int32_t copies = 0;  // kernels that the host launches for each of them beside
  // Of gradients and parameters: flat elements of the role (Role::offsets), before sharding.
  ElementRange elements{};
  // kRun: whole gradients that live from its start, gradients that were reduced and gathered
  // parameters that die at its end; all of them buffers, counted in birth and death.
  std::array<ElementRange, 2> holds_gradients{};
  ElementRange frees_gradients{}, frees_parameters{};
  const char* name = "";

  // Earlier instructions of this role, on other streams, that must have ended (-1: none).
  std::array<std::int32_t, 4> waits{-1, -1, -1, -1};
  // Births at issue and deaths at the end, beside what the operations themselves do.
  MemoryParts birth{};
  MemoryParts death{};

  void wait_for(std::int32_t instruction);
  void hold_gradients(ElementRange range, ByteCount held);
  void free_gradients(ElementRange range, ByteCount held);
  void free_parameters(ElementRange range, ByteCount held);
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

}  // namespace stepcast
