// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "memory/states.h"
#include "program/step.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

// Tags of the two directions of one boundary never meet.
std::int64_t forward_tag(std::int64_t model_chunk, std::int64_t micro_batch) {
  return model_chunk << 32 | micro_batch << 1;
}
std::int64_t backward_tag(std::int64_t model_chunk, std::int64_t micro_batch) {
  return forward_tag(model_chunk, micro_batch) | 1;
}

class ReplicatedStep {
 public:
  ReplicatedStep(RoleBuilder& builder, const StageOrder& order)
      : builder_(builder),
        scenario_(builder.scenario()),
        layout_(scenario_.layout),
        order_(order),
        model_chunks_(layout_.pp * layout_.virtual_stages) {}

  void run_passes();
  void reduce_rest();  // what was not reduced during the last backward
  void gather_parameters();

 private:
  bool reduces_per_micro_batch() const { return layout_.zero == 2; }
  // A stage stands still until its messages are through. With virtual stages a message may be sent
  // long before the receiver's slot for it: the frameworks post those receives ahead.
  bool blocks_on_sends() const { return !layout_.overlap.pp && layout_.virtual_stages == 1; }
  bool overlaps_reduction() const { return layout_.overlap.grad_reduce && data_ranks() > 1; }
  std::int64_t data_ranks() const { return layout_.dp * layout_.cp; }
  void pass(const Slot& slot, bool last);
  void backward(const Slot& slot, bool reduce);
  void gathering_forward(const Slot& slot);
  bool gathers_ahead() const {
    return layout_.overlap.param_gather && layout_.zero >= 1 && data_ranks() > 1;
  }
  void reduce(std::int64_t elements, Stream stream, InstructionIndex after);
  InstructionIndex receive_for(const Slot& slot);
  InstructionIndex send_after(const Slot& slot, InstructionIndex run);
  void wait_for_transfers(InstructionIndex received);
  std::int64_t bucket_elements(std::int64_t rule, std::int32_t chunk) const;

  RoleBuilder& builder_;
  const Scenario& scenario_;
  const Layout& layout_;
  const StageOrder& order_;
  std::int64_t model_chunks_;
  InstructionIndex pending_send_ = kNone;
  std::int64_t unreduced_ = 0;
};

// Gathers the updated parameters bucket by bucket behind the first forward of each chunk: they were
// updated at the end of the step before.
void ReplicatedStep::gathering_forward(const Slot& slot) {
  const DataType type = scenario_.training.precision;
  const std::int32_t count = builder_.blocks(slot.chunk);
  std::int32_t begin = 0;
  for (std::int32_t end = 1; end <= count; ++end) {
    const std::int64_t elements = builder_.elements(slot.chunk, begin, end);
    const std::int64_t bucket = bucket_elements(scenario_.rules.gather_bucket_elements, slot.chunk);
    if (end < count && elements < bucket) continue;
    const InstructionIndex gathered =
        builder_.collective("gather_parameters", Stream::kGather, CollectiveKind::kAllGather,
                            GroupKind::kData, elements * size_of(type), type);
    builder_.at(builder_.run(Pass::kForward, slot.chunk, slot.micro_batch, begin, end))
        .wait_for(gathered);
    begin = end;
  }
}

std::int64_t ReplicatedStep::bucket_elements(std::int64_t rule, std::int32_t chunk) const {
  // Megatron has one bucket on every stage but the first, and on later model chunks
  // (distributed_data_parallel.py; training.py, disable_bucketing).
  const bool one = scenario_.training.framework == Framework::kMegatron &&
                   (builder_.role().stage > 0 || chunk > 0);
  return one || rule <= 0 ? ObjectReader::kMaxCount : rule;
}

InstructionIndex ReplicatedStep::receive_for(const Slot& slot) {
  const std::int64_t chunk =
      builder_.role().chunks[static_cast<std::size_t>(slot.chunk)].model_chunk;
  const bool forward = slot.pass == Pass::kForward;
  const std::int64_t from = forward ? chunk - 1 : chunk + 1;
  if (from < 0 || from >= model_chunks_) return kNone;
  const auto peer = static_cast<std::int32_t>(stage_of_chunk(layout_, from));
  const std::int64_t tag =
      forward ? forward_tag(chunk, slot.micro_batch) : backward_tag(from, slot.micro_batch);
  const InstructionIndex received =
      builder_.receive(forward ? Stream::kReceiveForward : Stream::kReceiveBackward, peer, tag);
  // Without overlap the receive is issued behind the work before it.
  if (!layout_.overlap.pp) builder_.at(received).wait_for(builder_.last_run());
  if (!scenario_.rules.scatter_gather_p2p || layout_.sequence_parallel || layout_.tp == 1) {
    return received;
  }
  const Shape& shape = builder_.shape();
  const InstructionIndex gathered = builder_.collective(
      "gather_boundary", builder_.at(received).stream, CollectiveKind::kAllGather,
      GroupKind::kTensor, shape.rows * shape.hidden * shape.element, shape.type);
  builder_.at(gathered).wait_for(received);
  return gathered;
}

InstructionIndex ReplicatedStep::send_after(const Slot& slot, InstructionIndex run) {
  const std::int64_t chunk =
      builder_.role().chunks[static_cast<std::size_t>(slot.chunk)].model_chunk;
  const bool forward = slot.pass == Pass::kForward;
  const std::int64_t to = forward ? chunk + 1 : chunk - 1;
  if (to < 0 || to >= model_chunks_) return kNone;
  const auto peer = static_cast<std::int32_t>(stage_of_chunk(layout_, to));
  const std::int64_t tag =
      forward ? forward_tag(to, slot.micro_batch) : backward_tag(chunk, slot.micro_batch);
  const InstructionIndex sent =
      builder_.send(forward ? Stream::kSendForward : Stream::kSendBackward, peer, tag);
  builder_.at(sent).wait_for(run);
  return sent;
}

void ReplicatedStep::wait_for_transfers(InstructionIndex received) {
  const bool any = received != kNone || (pending_send_ != kNone && blocks_on_sends());
  if (any && scenario_.rules.host_sync_after_p2p && !layout_.overlap.pp) {
    builder_.host_sync(received, blocks_on_sends() ? pending_send_ : kNone);
  }
}

void ReplicatedStep::pass(const Slot& slot, bool last) {
  const InstructionIndex received = receive_for(slot);
  wait_for_transfers(received);
  const InstructionIndex sent = pending_send_;
  const auto before = static_cast<InstructionIndex>(builder_.role().instructions.size());
  if (slot.pass == Pass::kForward && slot.micro_batch == 0 && gathers_ahead()) {
    gathering_forward(slot);
  } else if (slot.pass == Pass::kForward) {
    builder_.run_whole(Pass::kForward, slot.chunk, slot.micro_batch);
  } else {
    backward(slot, last || reduces_per_micro_batch());
  }
  InstructionIndex first = before;
  while (builder_.at(first).kind != InstructionKind::kRun) ++first;
  builder_.at(first).wait_for(received);
  if (blocks_on_sends()) builder_.at(first).wait_for(sent);
  pending_send_ = send_after(slot, builder_.last_run());
}

void ReplicatedStep::reduce(std::int64_t elements, Stream stream, InstructionIndex after) {
  if (elements == 0 || data_ranks() == 1) return;
  const DataType type = scenario_.training.reduce_precision;
  const CollectiveKind kind =
      layout_.zero >= 1 ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  const InstructionIndex reduced = builder_.collective(
      "reduce_gradients", stream, kind, GroupKind::kData, elements * size_of(type), type);
  builder_.at(reduced).wait_for(after);
}

// Blocks run last to first; a bucket is reduced as soon as it is full.
void ReplicatedStep::backward(const Slot& slot, bool reduce_now) {
  const std::int32_t count = builder_.blocks(slot.chunk);
  if (!reduce_now || !overlaps_reduction()) {
    builder_.run_whole(Pass::kBackward, slot.chunk, slot.micro_batch);
    if (reduce_now) unreduced_ += builder_.elements(slot.chunk, 0, count);
    if (reduces_per_micro_batch()) {
      reduce(unreduced_, Stream::kReduce, builder_.last_run());
      unreduced_ = 0;
    }
    return;
  }
  std::int32_t end = count;
  for (std::int32_t begin = count; begin-- > 0;) {
    const std::int64_t elements = unreduced_ + builder_.elements(slot.chunk, begin, end);
    const std::int64_t bucket = bucket_elements(scenario_.rules.bucket_elements, slot.chunk);
    if (begin > 0 && elements < bucket) continue;
    builder_.run(Pass::kBackward, slot.chunk, slot.micro_batch, begin, end);
    reduce(elements, Stream::kReduce, builder_.last_run());
    unreduced_ = 0;
    end = begin;
  }
}

void ReplicatedStep::run_passes() {
  // The last backward of each chunk completes its gradients.
  std::vector<std::size_t> last_backward(builder_.role().chunks.size(), 0);
  for (std::size_t i = 0; i < order_.size(); ++i) {
    if (order_[i].pass != Pass::kForward) {
      last_backward[static_cast<std::size_t>(order_[i].chunk)] = i;
    }
  }
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const Slot& slot = order_[i];
    const bool backward = slot.pass != Pass::kForward;
    pass(slot, backward && last_backward[static_cast<std::size_t>(slot.chunk)] == i);
  }
}

void ReplicatedStep::reduce_rest() {
  const std::int64_t limit = std::max<std::int64_t>(1, scenario_.rules.bucket_elements);
  const bool bucketed =
      scenario_.training.framework == Framework::kDeepSpeed && scenario_.rules.bucket_elements > 0;
  const Stream stream = overlaps_reduction() ? Stream::kReduce : Stream::kCompute;
  while (unreduced_ > 0) {
    const std::int64_t now = bucketed ? std::min(unreduced_, limit) : unreduced_;
    reduce(now, stream, builder_.last_run());
    unreduced_ -= now;
  }
}

void ReplicatedStep::gather_parameters() {
  if (layout_.zero == 0 || data_ranks() == 1 || gathers_ahead()) return;
  const DataType type = scenario_.training.precision;
  const std::int64_t elements = builder_.role().parameters;
  const InstructionIndex gathered =
      builder_.collective("gather_parameters", Stream::kCompute, CollectiveKind::kAllGather,
                          GroupKind::kData, elements * size_of(type), type);
  builder_.at(gathered).wait_for(builder_.last_run());
}

}  // namespace

void arrange_replicated_step(RoleBuilder& builder, const StageOrder& order,
                             const StepBlocks& blocks) {
  ReplicatedStep step(builder, order);
  builder.run_block(blocks.zero_gradients, Phase::kOptimizer);
  step.run_passes();
  step.reduce_rest();
  arrange_update(builder, blocks);
  step.gather_parameters();
}

}  // namespace stepcast
