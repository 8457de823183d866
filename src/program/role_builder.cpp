// SPDX-License-Identifier: Apache-2.0
#include "program/role_builder.h"

#include "core/assert.h"

namespace stepcast {

void Instruction::wait_for(std::int32_t instruction) {
  if (instruction < 0) return;
  for (std::int32_t& wait : waits) {
    if (wait == instruction) return;
    if (wait < 0) {
      wait = instruction;
      return;
    }
  }
  STEPCAST_ASSERT(false, "an instruction waits for at most four others");
}

namespace {
ByteCount& buffers(MemoryParts& parts) {
  return parts[static_cast<std::size_t>(MemoryCategory::kBuffers)];
}
}  // namespace

void Instruction::hold_gradients(ElementRange range, ByteCount held) {
  (holds_gradients[0].size() == 0 ? holds_gradients[0] : holds_gradients[1]) = range;
  buffers(birth) += held;
}
void Instruction::free_gradients(ElementRange range, ByteCount held) {
  frees_gradients = range;
  buffers(death) += held;
}
void Instruction::free_parameters(ElementRange range, ByteCount held) {
  frees_parameters = range;
  buffers(death) += held;
}

const char* name_of(Stream stream) {
  switch (stream) {
    case Stream::kCompute:
      return "compute";
    case Stream::kGather:
      return "gather";
    case Stream::kReduce:
      return "reduce";
    case Stream::kSendForward:
      return "send forward";
    case Stream::kReceiveForward:
      return "receive forward";
    case Stream::kSendBackward:
      return "send backward";
    case Stream::kReceiveBackward:
      return "receive backward";
    case Stream::kHost:
      return "host";
  }
  return "";
}

InstructionIndex RoleBuilder::add(Instruction instruction) {
  role_.instructions.push_back(instruction);
  return static_cast<InstructionIndex>(role_.instructions.size() - 1);
}

InstructionIndex RoleBuilder::run(Pass pass, std::int32_t chunk, std::int32_t micro_batch,
                                  std::int32_t begin, std::int32_t end) {
  Instruction instruction{InstructionKind::kRun, Stream::kCompute};
  instruction.pass = pass;
  instruction.phase = pass == Pass::kForward ? Phase::kForward : Phase::kBackward;
  instruction.chunk = chunk;
  instruction.micro_batch = micro_batch;
  instruction.block_begin = begin;
  instruction.block_end = end;
  instruction.name = pass == Pass::kForward ? "forward" : "backward";
  const bool first = role_.chunks[static_cast<std::size_t>(chunk)].model_chunk == 0 && begin == 0;
  if (first && pass == Pass::kForward) {  // the tokens; everything else is received
    instruction.birth[static_cast<std::size_t>(MemoryCategory::kActivations)] =
        shape_.tokens * size_of(DataType::kInt64);
  }
  return last_run_ = add(instruction);
}

InstructionIndex RoleBuilder::run_whole(Pass pass, std::int32_t chunk, std::int32_t micro_batch) {
  return run(pass, chunk, micro_batch, 0, blocks(chunk));
}

InstructionIndex RoleBuilder::run_block(BlockId block, Phase phase) {
  Instruction instruction{InstructionKind::kRun, Stream::kCompute};
  instruction.phase = phase;
  instruction.block_begin = block.value;
  instruction.block_end = block.value + 1;
  instruction.name = "optimizer";
  return last_run_ = add(instruction);
}

InstructionIndex RoleBuilder::collective(const char* name, Stream stream, CollectiveKind kind,
                                         AxisGroup group, ByteCount bytes, DataType type,
                                         std::int32_t pieces) {
  Instruction instruction{InstructionKind::kCollective, stream};
  instruction.collective = kind;
  instruction.group = group;
  instruction.bytes = bytes;
  instruction.type = type;
  instruction.pieces = pieces;
  instruction.name = name;
  return add(instruction);
}

InstructionIndex RoleBuilder::collective(const char* name, Stream stream, CollectiveKind kind,
                                         ElementRange elements, DataType type,
                                         std::int32_t pieces) {
  const std::int64_t count = elements.size();
  const InstructionIndex index =
      collective(name, stream, kind, role_.group_of(elements), count * size_of(type), type, pieces);
  at(index).elements = elements;
  return index;
}

Instruction RoleBuilder::transfer(InstructionKind kind, const char* name, Stream stream,
                                  std::int32_t peer, std::int64_t tag) const {
  Instruction instruction{kind, stream};
  instruction.peer = peer;
  instruction.tag = tag;
  instruction.bytes = boundary_bytes(scenario_, shape_);
  instruction.type = shape_.type;
  instruction.name = name;
  // The whole activation dies with its send and is born with its receipt, however little crosses.
  MemoryParts& memory = kind == InstructionKind::kSend ? instruction.death : instruction.birth;
  memory[static_cast<std::size_t>(MemoryCategory::kActivations)] =
      shape_.rows * shape_.hidden * shape_.element;
  return instruction;
}

InstructionIndex RoleBuilder::send(Stream stream, std::int32_t peer, std::int64_t tag) {
  return add(transfer(InstructionKind::kSend, "send", stream, peer, tag));
}

InstructionIndex RoleBuilder::receive(Stream stream, std::int32_t peer, std::int64_t tag) {
  return add(transfer(InstructionKind::kReceive, "receive", stream, peer, tag));
}

InstructionIndex RoleBuilder::host_sync(InstructionIndex first, InstructionIndex second) {
  Instruction instruction{InstructionKind::kHostSync, Stream::kHost};
  instruction.name = "host_sync";
  instruction.wait_for(first);
  instruction.wait_for(second);
  return add(instruction);
}

void RoleBuilder::load_batch(InstructionIndex last_issued) {
  if (scenario_.rules.host_sync_at_batch && last_issued != kNone) host_sync(last_issued);
}

const Block& RoleBuilder::block(std::int32_t chunk, std::int32_t index) const {
  const Chunk& where = role_.chunks[static_cast<std::size_t>(chunk)];
  return program_.block(where.blocks[static_cast<std::size_t>(index)]);
}

std::int32_t RoleBuilder::blocks(std::int32_t chunk) const {
  return static_cast<std::int32_t>(role_.chunks[static_cast<std::size_t>(chunk)].blocks.size());
}

std::int64_t RoleBuilder::elements(std::int32_t chunk, std::int32_t begin, std::int32_t end) const {
  std::int64_t sum = 0;
  for (std::int32_t i = begin; i < end; ++i) sum += block(chunk, i).parameters.total();
  return sum;
}

ElementRange RoleBuilder::range(std::int32_t chunk, std::int32_t index, AxisGroup group) const {
  const FlatStretch* stretch = role_.stretch(group);
  if (stretch == nullptr) return {};
  const std::int64_t begin =
      stretch->offsets[static_cast<std::size_t>(chunk)][static_cast<std::size_t>(index)];
  for (const GroupElements& part : block(chunk, index).by_group) {
    if (part.group == group) return {begin, begin + part.elements};
  }
  return {begin, begin};
}

// With scatter/gather each tensor-parallel rank sends its share over its own NIC (Narayanan et al.
// 2021, section 4.1); with sequence parallelism the activation is cut already.
ByteCount boundary_bytes(const Scenario& scenario, const Shape& shape) {
  const ByteCount whole = shape.rows * shape.hidden * shape.element;
  const bool scatter = scenario.rules.scatter_gather_p2p && !shape.sequence_parallel;
  return scatter ? whole / shape.tp : whole;
}

}  // namespace stepcast
