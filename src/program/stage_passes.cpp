// SPDX-License-Identifier: Apache-2.0
#include "program/stage_passes.h"

#include "layout/pipeline.h"
#include "layout/scenario.h"

namespace stepcast {
namespace {

// Tags of the two directions of one boundary never meet.
std::int64_t forward_tag(std::int64_t model_chunk, std::int64_t micro_batch) {
  return model_chunk << 32 | micro_batch << 1;
}
std::int64_t backward_tag(std::int64_t model_chunk, std::int64_t micro_batch) {
  return forward_tag(model_chunk, micro_batch) | 1;
}

}  // namespace

bool splits_backward(const RoleBuilder& builder) {
  return builder.scenario().layout.defer_head_wgrad == 0 &&
         builder.block(0, 0).form == BackwardForm::kSplit;
}

StageOrder passes_of(const RoleBuilder& builder, const StageOrder& order) {
  if (!splits_backward(builder)) return order;
  StageOrder out;
  for (const Slot& slot : order) {
    if (slot.pass != Pass::kBackward) {
      out.push_back(slot);
      continue;
    }
    out.push_back({Pass::kInputGradient, slot.micro_batch, slot.chunk});
    out.push_back({Pass::kWeightGradient, slot.micro_batch, slot.chunk});
  }
  return out;
}

std::vector<std::size_t> last_backwards(const StageOrder& order, std::size_t chunks) {
  std::vector<std::size_t> last(chunks, 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i].pass != Pass::kForward) last[static_cast<std::size_t>(order[i].chunk)] = i;
  }
  return last;
}

StageTransfers::StageTransfers(RoleBuilder& builder)
    : builder_(builder),
      scenario_(builder.scenario()),
      layout_(scenario_.layout),
      pipeline_(pipeline_of(layout_, scenario_.micro_batches())) {}

// A stage waits until its messages are through. With virtual stages, or weight gradients apart, a
// message may be sent long before the receiver's slot for it: the frameworks post those receives
// ahead.
bool StageTransfers::blocks_on_sends() const {
  return !layout_.overlap.pp && layout_.virtual_stages == 1 && !splits_backward(builder_);
}

Stream StageTransfers::stream_for(const Slot& slot, bool sends) const {
  return stream_of(TransferStream{sends, slot.pass == Pass::kForward, goes_up(pipeline_, slot)});
}

// A pass of weight gradients receives and sends nothing.
InstructionIndex StageTransfers::receive_for(const Slot& slot) {
  if (slot.pass == Pass::kWeightGradient) return kNoInstruction;
  const std::int64_t chunk = model_chunk(slot);
  const bool forward = slot.pass == Pass::kForward;
  const std::int64_t from = forward ? chunk - 1 : chunk + 1;
  if (from < 0 || from >= pipeline_.all_chunks()) return kNoInstruction;
  const auto peer = static_cast<std::int32_t>(stage_of_chunk(pipeline_, from, slot.micro_batch));
  // It turns here, and hands on to itself.
  if (peer == builder_.role().stage) return kNoInstruction;
  const std::int64_t tag =
      forward ? forward_tag(chunk, slot.micro_batch) : backward_tag(from, slot.micro_batch);
  const InstructionIndex received = builder_.receive(stream_for(slot, false), peer, tag, slot);
  // Without overlap the receive is issued behind the work before it.
  if (!layout_.overlap.pp) builder_.at(received).wait_for(builder_.last_run());
  if (!scenario_.rules.scatter_gather_p2p || layout_.sequence_parallel || layout_.tp == 1) {
    return received;
  }
  const Shape& shape = builder_.shape();
  CollectiveCall call{
      Purpose::kBoundary,
      AxisGroup::kTensor,
      {CollectiveKind::kAllGather, shape.rows * shape.hidden * shape.element, shape.type}};
  call.slot = slot;
  const InstructionIndex gathered =
      builder_.collective("gather_boundary", builder_.at(received).stream, call);
  builder_.at(gathered).wait_for(received);
  return gathered;
}

InstructionIndex StageTransfers::send_after(const Slot& slot, InstructionIndex run) {
  if (slot.pass == Pass::kWeightGradient) return kNoInstruction;
  const std::int64_t chunk = model_chunk(slot);
  const bool forward = slot.pass == Pass::kForward;
  const std::int64_t to = forward ? chunk + 1 : chunk - 1;
  if (to < 0 || to >= pipeline_.all_chunks()) return kNoInstruction;
  const auto peer = static_cast<std::int32_t>(stage_of_chunk(pipeline_, to, slot.micro_batch));
  if (peer == builder_.role().stage) return kNoInstruction;
  const std::int64_t tag =
      forward ? forward_tag(to, slot.micro_batch) : backward_tag(chunk, slot.micro_batch);
  const InstructionIndex sent = builder_.send(stream_for(slot, true), peer, tag, slot);
  builder_.at(sent).wait_for(run);
  return sent;
}

void StageTransfers::wait_for(InstructionIndex received) {
  const bool any = received != kNoInstruction ||
                   (pending_send_ != kNoInstruction && blocks_on_sends());
  if (any && scenario_.rules.host_sync_after_p2p && !layout_.overlap.pp) {
    builder_.host_sync(received, blocks_on_sends() ? pending_send_ : kNoInstruction);
  }
}

void StageTransfers::load_batch(const Slot& slot, InstructionIndex received) {
  if (slot.pass != Pass::kForward) return;
  const std::int64_t chunk = model_chunk(slot);
  if (chunk != 0 && chunk != pipeline_.all_chunks() - 1) return;
  builder_.load_batch(received != kNoInstruction ? received : builder_.last_run());
}

InstructionIndex StageTransfers::begin(const Slot& slot) {
  const InstructionIndex received = receive_for(slot);
  wait_for(received);
  load_batch(slot, received);
  return received;
}

void StageTransfers::end(const Slot& slot, InstructionIndex received, InstructionIndex first) {
  while (!builder_.at(first).is<RunPass>()) ++first;
  builder_.at(first).wait_for(received);
  if (blocks_on_sends()) builder_.at(first).wait_for(pending_send_);
  pending_send_ = send_after(slot, builder_.last_run());
}

}  // namespace stepcast
