// SPDX-License-Identifier: Apache-2.0
#include "program/role_builder.h"

#include <array>
#include <utility>

#include "layout/pipeline.h"
#include "layout/scenario.h"
#include "memory/states.h"
#include "program/prediction_block.h"

namespace stepcast {

namespace {

ByteCount& activations(MemoryParts& parts) {
  return parts[static_cast<std::size_t>(MemoryCategory::kActivations)];
}

}  // namespace

InstructionIndex RoleBuilder::add(Instruction instruction) {
  stop_.pass();
  role_.instructions.push_back(std::move(instruction));
  return static_cast<InstructionIndex>(role_.instructions.size() - 1);
}

InstructionIndex RoleBuilder::run(Pass pass, std::int32_t chunk, std::int32_t micro_batch,
                                  std::int32_t begin, std::int32_t end) {
  static constexpr std::array<const char*, kPasses> kNames{"forward", "backward", "input_gradient",
                                                           "weight_gradient"};
  Instruction instruction{Stream::kCompute, kNames[static_cast<std::size_t>(pass)],
                          RunPass{{pass, micro_batch, chunk}, begin, end}};
  const bool first = role_.chunks[static_cast<std::size_t>(chunk)].model_chunk == 0 && begin == 0;
  if (first && pass == Pass::kForward) {  // the tokens; everything else is received
    activations(instruction.birth) = shape_.tokens * size_of(DataType::kInt64);
  }
  return last_run_ = add(std::move(instruction));
}

InstructionIndex RoleBuilder::run_whole(Pass pass, std::int32_t chunk, std::int32_t micro_batch) {
  return run(pass, chunk, micro_batch, 0, blocks(chunk));
}

InstructionIndex RoleBuilder::run_block(BlockId block) {
  const BlockKind kind = program_.block(block).kind;
  const char* name = kind == BlockKind::kCastGradients ? "cast_gradients"
                     : kind == BlockKind::kCopyUnit    ? "copy_unit"
                                                       : "optimizer";
  return last_run_ = add({Stream::kCompute, name, RunBlock{block, kind}});
}

InstructionIndex RoleBuilder::collective(const char* name, Stream stream,
                                         const CollectiveCall& call) {
  return add({stream, name, call});
}

InstructionIndex RoleBuilder::collective(const char* name, Stream stream, Purpose purpose,
                                         CollectiveKind kind, ElementRange elements, DataType type,
                                         std::int32_t pieces) {
  // A sharded range stays among the ranks that share one copy.
  const AxisGroup whole = role_.group_of(elements);
  const bool in_shards = kind != CollectiveKind::kAllReduce && has_copies(whole);
  CollectiveCall call{
      purpose, in_shards ? whole.inner() : whole, {kind, elements.size() * size_of(type), type}};
  call.pieces = pieces;
  call.elements = elements;
  return collective(name, stream, call);
}

bool RoleBuilder::has_copies(AxisGroup group) const {
  return size_of(group.outer(), scenario_.layout) > 1;
}

InstructionIndex RoleBuilder::sum_copies(InstructionIndex reduced) {
  if (reduced == kNoInstruction) return reduced;
  const CollectiveCall before = *at(reduced).as<CollectiveCall>();
  if (!before.group.is_inner()) return reduced;
  const std::int64_t shards = size_of(before.group, scenario_.layout);
  const Message& own = before.message;
  CollectiveCall call{Purpose::kGradients,
                      before.group.outer(),
                      {CollectiveKind::kAllReduce, (own.bytes + shards - 1) / shards, own.type}};
  call.pieces = before.pieces;
  call.elements = before.elements;
  const Stream beside =
      at(reduced).stream == Stream::kReduce ? Stream::kReduceCopies : at(reduced).stream;
  const InstructionIndex index = collective("reduce_copies", beside, call);
  at(index).wait_for(reduced);
  return index;
}

InstructionIndex RoleBuilder::copy_states(const StateCopy& copy, InstructionIndex after) {
  const bool leaves = copy.direction == CopyDirection::kToHost;
  const bool gradients = copy.purpose == Purpose::kGradients;
  const char* name = gradients ? "offload_gradients" : "reload_parameters";
  const InstructionIndex index = add({leaves ? Stream::kCopyOut : Stream::kCopyIn, name, copy});
  at(index).wait_for(after);
  return index;
}

InstructionIndex RoleBuilder::update_on_host(const HostUpdate& update, InstructionIndex after) {
  const InstructionIndex index = add({Stream::kHostUpdate, "host_update", update});
  at(index).wait_for(after);
  return index;
}

// The reduced shard lies in a buffer until it has left.
InstructionIndex RoleBuilder::copy_to_host(InstructionIndex reduced) {
  if (reduced == kNoInstruction) return reduced;
  const ElementRange range = at(reduced).as<CollectiveCall>()->elements;
  const AxisGroup group = role_.group_of(range);
  if (!leaves_as_reduced(scenario_, group)) return reduced;
  const std::int64_t elements = host_elements(scenario_, range.size(), group);
  const ByteCount bytes = elements * size_of(scenario_.training.reduce_precision);
  constexpr auto kBuffers = static_cast<std::size_t>(MemoryCategory::kBuffers);
  at(reduced).birth[kBuffers] += bytes;
  const bool adds = !on_host_.insert(range.begin).second;
  const InstructionIndex copied = copy_states(
      {{CopyDirection::kToHost, bytes}, Purpose::kGradients, {range}, false, adds}, reduced);
  at(copied).death[kBuffers] += bytes;
  return reduced;
}

// Before the head's chunk those of prediction modules cross beside the model's.
std::int64_t RoleBuilder::states_across(const Slot& slot, bool sends) const {
  const std::int64_t chunk = role_.chunks[static_cast<std::size_t>(slot.chunk)].model_chunk;
  const bool leaves_upwards = (slot.pass == Pass::kForward) == sends;
  const std::int64_t upper = leaves_upwards ? chunk + 1 : chunk;
  const bool enters_head = upper + 1 == model_chunks(scenario_.layout);
  return enters_head ? hidden_states_of_head(scenario_) : 1;
}

ByteCount RoleBuilder::whole_boundary(const Slot& slot, bool sends) const {
  return states_across(slot, sends) * shape_.rows * shape_.hidden * shape_.element;
}

StageTransfer RoleBuilder::boundary(std::int32_t peer, std::int64_t tag, const Slot& slot,
                                    bool sends) const {
  const ByteCount bytes = states_across(slot, sends) * boundary_bytes(scenario_, shape_);
  return {peer, tag, bytes, shape_.type, slot};
}

// The whole activation dies with its send and is born with its receipt, however little crosses.
InstructionIndex RoleBuilder::send(Stream stream, std::int32_t peer, std::int64_t tag,
                                   const Slot& slot) {
  const InstructionIndex index = add({stream, "send", Send{boundary(peer, tag, slot, true)}});
  activations(at(index).death) = whole_boundary(slot, true);
  return index;
}

InstructionIndex RoleBuilder::receive(Stream stream, std::int32_t peer, std::int64_t tag,
                                      const Slot& slot) {
  const InstructionIndex index =
      add({stream, "receive", Receive{boundary(peer, tag, slot, false)}});
  activations(at(index).birth) = whole_boundary(slot, false);
  return index;
}

void RoleBuilder::hold_flat(InstructionIndex instruction, ByteCount bytes) {
  constexpr auto kBuffers = static_cast<std::size_t>(MemoryCategory::kBuffers);
  at(instruction).birth[kBuffers] += bytes;
  at(instruction).death[kBuffers] += bytes;
}

InstructionIndex RoleBuilder::host_sync(InstructionIndex first, InstructionIndex second) {
  const InstructionIndex index = add({Stream::kHost, "host_sync", HostWait{}});
  at(index).wait_for(first);
  at(index).wait_for(second);
  return index;
}

void RoleBuilder::load_batch(InstructionIndex last_issued) {
  if (scenario_.rules.host_sync_at_batch && last_issued != kNoInstruction) host_sync(last_issued);
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
