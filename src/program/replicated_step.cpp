// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "layout/pipeline.h"
#include "program/buckets.h"
#include "program/fp8_weights.h"
#include "program/step.h"

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
        model_chunks_(layout_.pp * layout_.virtual_stages),
        buckets_(cut_buckets(builder, reduces_in_backward() || gathers_ahead(), bucket_rule())) {}

  void run_passes();
  void run_deferred();  // weight gradients of the head that wait for the end of the passes
  void reduce_rest();   // what was not reduced during the last backward
  void gather_parameters();

 private:
  bool reduces_per_micro_batch() const { return layout_.zero == 2; }
  // A stage waits until its messages are through. With virtual stages, or weight gradients apart, a
  // message may be sent long before the receiver's slot for it: the frameworks post those receives
  // ahead.
  bool blocks_on_sends() const {
    return !layout_.overlap.pp && layout_.virtual_stages == 1 && !splits_backward();
  }
  bool splits_backward() const {
    return layout_.defer_head_wgrad == 0 && builder_.block(0, 0).form == BackwardForm::kSplit;
  }
  // Megatron defers the first micro-batches, up to the limit (tensor_parallel/layers.py).
  bool defers_head(std::int32_t chunk) const {
    return layout_.defer_head_wgrad > 0 &&
           builder_.block(chunk, builder_.blocks(chunk) - 1).kind == BlockKind::kHead;
  }
  std::int64_t deferred() const {
    return std::min(layout_.defer_head_wgrad, scenario_.micro_batches());
  }
  bool reduces_in_backward() const {
    return data_ranks() > 1 && (layout_.overlap.grad_reduce || reduces_per_micro_batch());
  }
  // Without overlap ZeRO-2 reduces a bucket where the framework fills one, or a chunk at once.
  std::int64_t bucket_rule() const {
    if (!reduces_in_backward()) {
      return gathers_ahead() ? scenario_.rules.gather_bucket_elements
                             : scenario_.rules.bucket_elements;
    }
    const bool fills = layout_.overlap.grad_reduce || scenario_.rules.cuts_full_buckets;
    return fills ? scenario_.rules.bucket_elements : 0;
  }
  // The size of the largest group that reduces gradients.
  std::int64_t data_ranks() const {
    std::int64_t most = size_of(AxisGroup::kData, layout_);
    for (const FlatStretch& stretch : builder_.role().stretches) {
      most = std::max(most, size_of(stretch.group, layout_));
    }
    return most;
  }
  bool has_deferred(const Bucket& bucket) const {
    return bucket.chunk >= 0 && defers_head(bucket.chunk) &&
           bucket.block_end == builder_.blocks(bucket.chunk);
  }
  bool is_alone(ElementRange range) const {
    return size_of(builder_.role().group_of(range), layout_) == 1;
  }
  void pass(const Slot& slot, bool last);
  bool runs_beside(const Slot& backward, const Slot& forward, bool last) const;
  void pass_pair(const Slot& backward, const Slot& forward);
  void load_batch(const Slot& slot, InstructionIndex received);
  StageOrder passes() const;
  void run_slot(const Slot& slot, bool last);
  void backward(const Slot& slot, bool reduce);
  InstructionIndex run_backward(const Slot& slot, std::int32_t begin, std::int32_t end);
  void gathering_forward(const Slot& slot);
  bool gathers_ahead() const {
    return layout_.overlap.param_gather && layout_.zero >= 1 && data_ranks() > 1;
  }
  InstructionIndex last_instruction() const {
    return static_cast<InstructionIndex>(builder_.role().instructions.size()) - 1;
  }
  InstructionIndex reduce(const Bucket& bucket, Stream stream, InstructionIndex after);
  InstructionIndex gather(ElementRange range, Stream stream);
  void hold_gradients(const Bucket& bucket, InstructionIndex run);
  void hold(InstructionIndex run, ElementRange range) {
    builder_.at(run).hold_gradients(range, gradient_bytes(range));
  }
  void free_in_flight(InstructionIndex behind);
  std::vector<ElementRange> reduced_of(const Bucket& bucket) const;
  ByteCount gradient_bytes(ElementRange range) const {
    return range.size() * size_of(scenario_.training.grad_precision);
  }
  Stream transfers(const Slot& slot, bool sends) const {
    const bool up = slot.chunk == 1 && rules_of(layout_.schedule).placement == Placement::kFolded;
    return stream_of(TransferStream{sends, slot.pass == Pass::kForward, up});
  }
  InstructionIndex receive_for(const Slot& slot);
  InstructionIndex send_after(const Slot& slot, InstructionIndex run);
  void wait_for_transfers(InstructionIndex received);

  RoleBuilder& builder_;
  const Scenario& scenario_;
  const Layout& layout_;
  const StageOrder& order_;
  std::int64_t model_chunks_;
  std::vector<Bucket> buckets_;
  InstructionIndex pending_send_ = kNone;
  InstructionIndex last_reduction_ = kNone, previous_reduction_ = kNone;
  std::vector<ElementRange> in_flight_;  // the bucket that is being reduced
};

// Gathers the updated parameters bucket by bucket behind the first forward of each chunk: they were
// updated at the end of the step before.
void ReplicatedStep::gathering_forward(const Slot& slot) {
  for (std::size_t b = buckets_.size(); b-- > 0;) {
    const Bucket& bucket = buckets_[b];
    if (bucket.chunk != slot.chunk) continue;
    std::vector<InstructionIndex> gathered;
    for (const ElementRange& range : bucket.ranges) {
      if (!is_alone(range)) gathered.push_back(gather(range, Stream::kGather));
    }
    const InstructionIndex run = builder_.run(Pass::kForward, slot.chunk, slot.micro_batch,
                                              bucket.block_begin, bucket.block_end);
    for (const InstructionIndex index : gathered) builder_.at(run).wait_for(index);
  }
}

InstructionIndex ReplicatedStep::gather(ElementRange range, Stream stream) {
  const InstructionIndex index =
      builder_.collective("gather_parameters", stream, Purpose::kParameters,
                          CollectiveKind::kAllGather, range, scenario_.training.wide());
  builder_.at(index).as<CollectiveCall>()->message.bytes -= saved_by_fp8(builder_, range);
  return index;
}

// A pass of weight gradients receives and sends nothing.
InstructionIndex ReplicatedStep::receive_for(const Slot& slot) {
  if (slot.pass == Pass::kWeightGradient) return kNone;
  const std::int64_t chunk =
      builder_.role().chunks[static_cast<std::size_t>(slot.chunk)].model_chunk;
  const bool forward = slot.pass == Pass::kForward;
  const std::int64_t from = forward ? chunk - 1 : chunk + 1;
  if (from < 0 || from >= model_chunks_) return kNone;
  const auto peer = static_cast<std::int32_t>(stage_of_chunk(layout_, from));
  if (peer == builder_.role().stage) return kNone;  // it turns here, and hands on to itself
  const std::int64_t tag =
      forward ? forward_tag(chunk, slot.micro_batch) : backward_tag(from, slot.micro_batch);
  const InstructionIndex received = builder_.receive(transfers(slot, false), peer, tag, slot);
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

InstructionIndex ReplicatedStep::send_after(const Slot& slot, InstructionIndex run) {
  if (slot.pass == Pass::kWeightGradient) return kNone;
  const std::int64_t chunk =
      builder_.role().chunks[static_cast<std::size_t>(slot.chunk)].model_chunk;
  const bool forward = slot.pass == Pass::kForward;
  const std::int64_t to = forward ? chunk + 1 : chunk - 1;
  if (to < 0 || to >= model_chunks_) return kNone;
  const auto peer = static_cast<std::int32_t>(stage_of_chunk(layout_, to));
  if (peer == builder_.role().stage) return kNone;
  const std::int64_t tag =
      forward ? forward_tag(to, slot.micro_batch) : backward_tag(chunk, slot.micro_batch);
  const InstructionIndex sent = builder_.send(transfers(slot, true), peer, tag, slot);
  builder_.at(sent).wait_for(run);
  return sent;
}

void ReplicatedStep::wait_for_transfers(InstructionIndex received) {
  const bool any = received != kNone || (pending_send_ != kNone && blocks_on_sends());
  if (any && scenario_.rules.host_sync_after_p2p && !layout_.overlap.pp) {
    builder_.host_sync(received, blocks_on_sends() ? pending_send_ : kNone);
  }
}

// Only the stages where the model begins and ends read text.
void ReplicatedStep::load_batch(const Slot& slot, InstructionIndex received) {
  if (slot.pass != Pass::kForward) return;
  const std::int64_t chunk =
      builder_.role().chunks[static_cast<std::size_t>(slot.chunk)].model_chunk;
  if (chunk != 0 && chunk != model_chunks_ - 1) return;
  builder_.load_batch(received != kNone ? received : builder_.last_run());
}

void ReplicatedStep::pass(const Slot& slot, bool last) {
  const InstructionIndex received = receive_for(slot);
  wait_for_transfers(received);
  load_batch(slot, received);
  const InstructionIndex sent = pending_send_;
  const auto before = static_cast<InstructionIndex>(builder_.role().instructions.size());
  run_slot(slot, last);
  InstructionIndex first = before;
  while (!builder_.at(first).is_run()) ++first;
  builder_.at(first).wait_for(received);
  if (blocks_on_sends()) builder_.at(first).wait_for(sent);
  pending_send_ = send_after(slot, builder_.last_run());
}

// Whole passes alone run beside others: one that is cut into buckets runs by itself.
bool ReplicatedStep::runs_beside(const Slot& backward, const Slot& forward, bool last) const {
  if (!layout_.overlap.ep || backward.pass != Pass::kBackward || forward.pass != Pass::kForward) {
    return false;
  }
  const bool reduces = (last || reduces_per_micro_batch()) && reduces_in_backward();
  const bool gathers = forward.micro_batch == 0 && gathers_ahead();
  return backward.micro_batch != forward.micro_batch && !reduces && !gathers;
}

// Both begin when both have received, and send when both have ended (Megatron-LM,
// pipeline_parallel/combined_1f1b.py).
void ReplicatedStep::pass_pair(const Slot& backward, const Slot& forward) {
  const InstructionIndex gradient = receive_for(backward), activation = receive_for(forward);
  wait_for_transfers(gradient);
  wait_for_transfers(activation);
  load_batch(forward, activation);
  const InstructionIndex first =
      builder_.run_whole(backward.pass, backward.chunk, backward.micro_batch);
  builder_.at(first).wait_for(gradient);
  builder_.at(first).wait_for(activation);
  const InstructionIndex second =
      builder_.run_whole(forward.pass, forward.chunk, forward.micro_batch);
  builder_.at(first).as<RunPass>()->beside = forward;
  builder_.at(second).as<RunPass>()->beside = backward;
  send_after(backward, second);
  pending_send_ = send_after(forward, second);
}

void ReplicatedStep::run_slot(const Slot& slot, bool last) {
  if (slot.pass == Pass::kForward && slot.micro_batch == 0 && gathers_ahead()) {
    gathering_forward(slot);
  } else if (slot.pass == Pass::kForward || slot.pass == Pass::kInputGradient) {
    builder_.run_whole(slot.pass, slot.chunk, slot.micro_batch);
  } else {
    backward(slot, last || reduces_per_micro_batch());
  }
}

InstructionIndex ReplicatedStep::reduce(const Bucket& bucket, Stream stream,
                                        InstructionIndex after) {
  const bool scatters = layout_.zero >= 1 && !scenario_.rules.sums_whole_gradients;
  const CollectiveKind kind =
      scatters ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  InstructionIndex reduced = kNone;
  for (const ElementRange& range : bucket.ranges) {
    if (is_alone(range)) continue;
    reduced = builder_.collective("reduce_gradients", stream, Purpose::kGradients, kind, range,
                                  scenario_.training.reduce_precision);
    builder_.at(reduced).wait_for(after);
    // ZeRO-2 holds the bucket itself.
    if (scenario_.rules.copies_flat_gradients && !reduces_per_micro_batch()) {
      builder_.hold_flat(reduced, gradient_bytes(range));
    }
    reduced = builder_.sum_copies(reduced);
  }
  return reduced;
}

// The pass that completes gradients. Blocks run last to first; a bucket is reduced as soon as it is
// full.
void ReplicatedStep::backward(const Slot& slot, bool reduce_now) {
  if (!reduce_now || !reduces_in_backward()) {
    run_backward(slot, 0, builder_.blocks(slot.chunk));
    return;
  }
  for (const Bucket& bucket : buckets_) {
    if (bucket.chunk != slot.chunk) continue;
    const InstructionIndex run = run_backward(slot, bucket.block_begin, bucket.block_end);
    if (has_deferred(bucket)) continue;
    hold_gradients(bucket, run);
    const bool beside = layout_.overlap.grad_reduce || !scenario_.rules.cuts_full_buckets;
    const InstructionIndex reduced =
        reduce(bucket, beside ? Stream::kReduce : Stream::kCompute, run);
    previous_reduction_ = last_reduction_;
    last_reduction_ = reduced;
    // Nothing hides the last reduction, because the next micro-batch soon writes its first
    // gradients.
    if (!beside || &bucket == &buckets_.back()) free_in_flight(last_instruction());
  }
}

// A head whose weight gradients may wait runs by itself, in two passes.
InstructionIndex ReplicatedStep::run_backward(const Slot& slot, std::int32_t begin,
                                              std::int32_t end) {
  const auto [pass, micro_batch, chunk] = slot;
  if (!defers_head(chunk) || end < builder_.blocks(chunk)) {
    return builder_.run(pass, chunk, micro_batch, begin, end);
  }
  InstructionIndex last = builder_.run(Pass::kInputGradient, chunk, micro_batch, end - 1, end);
  if (micro_batch >= deferred()) {
    last = builder_.run(Pass::kWeightGradient, chunk, micro_batch, end - 1, end);
  }
  return begin + 1 < end ? builder_.run(pass, chunk, micro_batch, begin, end - 1) : last;
}

// Its gradients are complete when the deferred ones are (Megatron-LM,
// pipeline_parallel/schedules.py: finish_embedding_wgrad_compute).
void ReplicatedStep::run_deferred() {
  for (std::int32_t chunk = 0; chunk < static_cast<std::int32_t>(builder_.chunks()); ++chunk) {
    if (!defers_head(chunk)) continue;
    const std::int32_t end = builder_.blocks(chunk);
    for (std::int32_t micro_batch = 0; micro_batch < deferred(); ++micro_batch) {
      builder_.run(Pass::kWeightGradient, chunk, micro_batch, end - 1, end);
    }
  }
  if (!reduces_in_backward()) return;
  for (const Bucket& bucket : buckets_) {
    if (has_deferred(bucket)) reduce(bucket, Stream::kReduce, builder_.last_run());
  }
}

// ZeRO-2 keeps no whole gradients. Those of a bucket live from its backward until they are reduced.
// The next bucket's backward hides this reduction, and the one after that waits for it.
void ReplicatedStep::hold_gradients(const Bucket& bucket, InstructionIndex run) {
  if (!reduces_per_micro_batch()) return;
  std::vector<ElementRange> fresh = reduced_of(bucket);
  // The head adds to a tied table long before the embedding does. A rank that is alone in the group
  // of the table, which no expert holds, keeps it.
  const bool tied = scenario_.shares_trained_table() && buckets_.size() > 1 &&
                    size_of(AxisGroup::kData, layout_) > 1;
  const ElementRange table{0, builder_.shape().vocab * builder_.shape().hidden};
  if (tied && &bucket == &buckets_.front()) hold(run, table);
  for (ElementRange& range : fresh) {
    if (tied && &bucket == &buckets_.back() && range.begin == table.begin) range.begin = table.end;
    hold(run, range);
  }
  if (!in_flight_.empty()) builder_.at(run).wait_for(previous_reduction_);
  free_in_flight(run);
  in_flight_ = reduced_of(bucket);
}

// The gradients of a bucket that its reductions take, in one range for each group. Where a rank is
// alone in a group it keeps them.
std::vector<ElementRange> ReplicatedStep::reduced_of(const Bucket& bucket) const {
  std::vector<ElementRange> out;
  for (const ElementRange& range : bucket.ranges) {
    if (is_alone(range)) continue;
    if (!out.empty() && range.end == out.back().begin) {
      out.back().begin = range.begin;  // ranges of a group come last to first
    } else {
      out.push_back(range);
    }
  }
  return out;
}

// If blocks have their backward apart, a whole one in the order is the two passes in a row.
StageOrder ReplicatedStep::passes() const {
  if (!splits_backward()) return order_;
  StageOrder out;
  for (const Slot& slot : order_) {
    if (slot.pass != Pass::kBackward) {
      out.push_back(slot);
      continue;
    }
    out.push_back({Pass::kInputGradient, slot.micro_batch, slot.chunk});
    out.push_back({Pass::kWeightGradient, slot.micro_batch, slot.chunk});
  }
  return out;
}

void ReplicatedStep::run_passes() {
  // The last backward of each chunk completes its gradients.
  const StageOrder order = passes();
  std::vector<std::size_t> last_backward(builder_.role().chunks.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i].pass != Pass::kForward) {
      last_backward[static_cast<std::size_t>(order[i].chunk)] = i;
    }
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Slot& slot = order[i];
    const bool backward = slot.pass != Pass::kForward;
    const bool last = backward && last_backward[static_cast<std::size_t>(slot.chunk)] == i;
    if (i + 1 < order.size() && runs_beside(slot, order[i + 1], last)) {
      pass_pair(slot, order[++i]);
    } else {
      pass(slot, last);
    }
  }
}

void ReplicatedStep::reduce_rest() {
  if (!reduces_in_backward()) {
    for (const Bucket& bucket : buckets_) reduce(bucket, Stream::kCompute, builder_.last_run());
  }
  free_in_flight(last_instruction());  // before the update
}

void ReplicatedStep::free_in_flight(InstructionIndex behind) {
  for (const ElementRange& range : in_flight_) {
    builder_.at(behind).free_gradients(range, gradient_bytes(range));
  }
  in_flight_.clear();
}

void ReplicatedStep::gather_parameters() {
  if (layout_.zero == 0 || data_ranks() == 1 || gathers_ahead()) return;
  for (std::size_t b = buckets_.size(); b-- > 0;) {
    for (const ElementRange& range : buckets_[b].ranges) {
      if (is_alone(range)) continue;
      builder_.at(gather(range, Stream::kCompute)).wait_for(builder_.last_run());
    }
  }
}

}  // namespace

void arrange_replicated_step(RoleBuilder& builder, const StageOrder& order,
                             const StepBlocks& blocks) {
  ReplicatedStep step(builder, order);
  builder.run_block(blocks.zero_gradients);
  step.run_passes();
  step.run_deferred();
  step.reduce_rest();
  arrange_update(builder, blocks);
  step.gather_parameters();
}

}  // namespace stepcast
