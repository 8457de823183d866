// SPDX-License-Identifier: Apache-2.0
#include "program/instruction.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "core/overloaded.h"

namespace stepcast {
namespace {

ByteCount& buffers(MemoryParts& parts) {
  return parts[static_cast<std::size_t>(MemoryCategory::kBuffers)];
}

}  // namespace

ByteCount total(const MemoryParts& parts) {
  return std::accumulate(parts.begin(), parts.end(), ByteCount{0});
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
    case Stream::kSendForwardUp:
      return "send forward up";
    case Stream::kReceiveForwardUp:
      return "receive forward up";
    case Stream::kSendBackwardUp:
      return "send backward up";
    case Stream::kReceiveBackwardUp:
      return "receive backward up";
    case Stream::kHost:
      return "host";
    case Stream::kCopyOut:
      return "copy out";
    case Stream::kCopyIn:
      return "copy in";
    case Stream::kBlockCommunication:
      return "block communication";
    case Stream::kBlockCopy:
      return "block copy";
    case Stream::kReduceCopies:
      return "reduce copies";
    case Stream::kHostUpdate:
      return "host update";
  }
  return "";
}

const char* name_of(BlockKind kind) {
  switch (kind) {
    case BlockKind::kEmbedding:
      return "embedding";
    case BlockKind::kLayer:
      return "layer";
    case BlockKind::kPrediction:
      return "prediction";
    case BlockKind::kHead:
      return "head";
    case BlockKind::kZeroGradients:
      return "zero gradients";
    case BlockKind::kCastGradients:
      return "cast gradients";
    case BlockKind::kCopyUnit:
      return "copy unit";
    case BlockKind::kGradientNorm:
      return "gradient norm";
    case BlockKind::kUpdate:
      return "update";
  }
  return "";
}

namespace {

struct TransferRow {
  Stream stream;
  TransferStream transfers;
};
constexpr TransferRow kTransfers[] = {
    {Stream::kSendForward, {true, true, false}},
    {Stream::kReceiveForward, {false, true, false}},
    {Stream::kSendBackward, {true, false, false}},
    {Stream::kReceiveBackward, {false, false, false}},
    {Stream::kSendForwardUp, {true, true, true}},
    {Stream::kReceiveForwardUp, {false, true, true}},
    {Stream::kSendBackwardUp, {true, false, true}},
    {Stream::kReceiveBackwardUp, {false, false, true}},
};

}  // namespace

Stream stream_of(const TransferStream& transfers) {
  return std::ranges::find(kTransfers, transfers, &TransferRow::transfers)->stream;
}

std::optional<TransferStream> transfers_of(Stream stream) {
  const auto found = std::ranges::find(kTransfers, stream, &TransferRow::stream);
  return found == std::end(kTransfers) ? std::nullopt : std::optional(found->transfers);
}

Stream stream_of(BlockStream stream) {
  switch (stream) {
    case BlockStream::kCompute:
      return Stream::kCompute;
    case BlockStream::kCommunication:
      return Stream::kBlockCommunication;
    case BlockStream::kCopy:
      return Stream::kBlockCopy;
  }
  return Stream::kCompute;
}

const Slot* Instruction::slot() const {
  using Result = const Slot*;
  return std::visit(Overloaded{
                        [](const RunPass& run) -> Result { return &run.slot; },
                        [](const RunBlock&) -> Result { return nullptr; },
                        [](const CollectiveCall& call) -> Result {
                          return call.purpose == Purpose::kBoundary ? &call.slot : nullptr;
                        },
                        [](const StageTransfer& moved) -> Result { return &moved.slot; },
                        [](const HostWait&) -> Result { return nullptr; },
                        [](const ActivationCopy& copy) -> Result { return &copy.slot; },
                        [](const StateCopy&) -> Result { return nullptr; },
                        [](const HostUpdate&) -> Result { return nullptr; },
                    },
                    work);
}

Phase Instruction::phase() const {
  if (const auto* run = as<RunPass>()) {
    if (run->slot.pass == Pass::kForward) return Phase::kForward;
    return run->slot.pass == Pass::kWeightGradient ? Phase::kWeightGradient : Phase::kBackward;
  }
  const auto* block = as<RunBlock>();
  if (block == nullptr) return Phase::kForward;
  const bool of_unit =
      block->kind == BlockKind::kCastGradients || block->kind == BlockKind::kCopyUnit;
  return of_unit ? Phase::kBackward : Phase::kOptimizer;
}

ByteCount Instruction::bytes() const {
  return std::visit(Overloaded{[](const RunPass&) { return ByteCount{0}; },
                               [](const RunBlock&) { return ByteCount{0}; },
                               [](const CollectiveCall& call) { return call.message.bytes; },
                               [](const StageTransfer& moved) { return moved.bytes; },
                               [](const HostWait&) { return ByteCount{0}; },
                               [](const HostUpdate&) { return ByteCount{0}; },
                               [](const HostCopy& copy) { return copy.bytes; }},
                    work);
}

ByteCount Instruction::host_birth() const {
  if (const auto* states = as<StateCopy>()) return states->adds ? states->bytes : 0;
  const auto* copy = as<ActivationCopy>();
  return copy != nullptr && copy->direction == CopyDirection::kToHost ? copy->bytes : 0;
}
ByteCount Instruction::host_death() const {
  if (is<StateCopy>()) return host_birth();
  const auto* copy = as<ActivationCopy>();
  return copy != nullptr && copy->direction == CopyDirection::kFromHost ? copy->bytes : 0;
}

void Instruction::hold_gradients(ElementRange range, ByteCount held) {
  if (range.size() > 0) windows.make().holds_gradients.push_back(range);
  buffers(birth) += held;
}
void Instruction::free_gradients(ElementRange range, ByteCount held) {
  if (range.size() > 0) windows.make().frees_gradients.push_back(range);
  buffers(death) += held;
}
void Instruction::free_parameters(ElementRange range, ByteCount held) {
  if (range.size() > 0) windows.make().frees_parameters.push_back(range);
  buffers(death) += held;
}

void take_begin(Instruction& first, const Instruction& whole) {
  for (const InstructionIndex wait : whole.waits) first.waits.add(wait);
  first.birth = whole.birth;
  const FlatWindows& windows = whole.windows.get();
  if (!windows.holds_gradients.empty()) {
    first.windows.make().holds_gradients = windows.holds_gradients;
  }
}

void take_end(Instruction& last, const Instruction& whole) {
  last.death = whole.death;
  if (!whole.windows.exists()) return;
  last.windows.make().frees_gradients = whole.windows.get().frees_gradients;
  last.windows.make().frees_parameters = whole.windows.get().frees_parameters;
}

}  // namespace stepcast
