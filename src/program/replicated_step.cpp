// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "layout/pipeline.h"
#include "layout/scenario.h"
#include "memory/states.h"
#include "program/buckets.h"
#include "program/fp8_weights.h"
#include "program/muon.h"
#include "program/stage_passes.h"
#include "program/step.h"

namespace stepcast {
namespace {

// Elements that pad whole matrices in the shards of a group, for each of its own.
std::map<AxisGroup, double> padding_of(const RoleBuilder& builder) {
  std::map<AxisGroup, double> out;
  const Scenario& scenario = builder.scenario();
  if (scenario.layout.zero == 0 || scenario.rules.muon_deal != MuonDeal::kMatrices) return out;
  for (const MuonShare& share : muon_shares(scenario, builder.program(), builder.role())) {
    const AxisGroup group = share.states.group;
    const double all = static_cast<double>(builder.role().stretch(group)->range.size());
    out[group] = static_cast<double>(share.padding(shard_ranks(scenario, group))) / all;
  }
  return out;
}

class ReplicatedStep {
 public:
  ReplicatedStep(RoleBuilder& builder, const StageOrder& order)
      : builder_(builder),
        scenario_(builder.scenario()),
        layout_(scenario_.layout),
        order_(order),
        transfers_(builder),
        padding_(padding_of(builder)),
        buckets_(cut_buckets(builder, reduces_in_backward() || gathers_ahead(), bucket_rule())) {}

  void run_passes();
  void run_deferred();  // weight gradients of the head that wait for the end of the passes
  void reduce_rest();   // what was not reduced during the last backward
  void gather_parameters();

 private:
  // Weights' gradients come with two passes where they are apart, so that a step sums them before
  // any are reduced.
  bool reduces_per_micro_batch() const { return layout_.zero == 2 && !splits_backward(builder_); }
  bool sums_whole_step() const {
    return layout_.zero == 2 && splits_backward(builder_) && data_ranks() > 1;
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
    return data_ranks() > 1 && (layout_.overlap.grad_reduce || layout_.zero == 2);
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
  bool gathers(const Slot& forward) const;
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
  void pad(InstructionIndex index);
  void hold_gradients(const Bucket& bucket, InstructionIndex run);
  void hold_bucket(const Bucket& bucket, InstructionIndex run);
  void hold_whole_chunk(InstructionIndex run, std::int32_t chunk);
  void hold(InstructionIndex run, ElementRange range) {
    builder_.at(run).hold_gradients(range, gradient_bytes(range));
  }
  void free_in_flight(InstructionIndex behind);
  std::vector<ElementRange> reduced_of(const Bucket& bucket) const;
  ByteCount gradient_bytes(ElementRange range) const {
    return range.size() * size_of(scenario_.training.grad_precision);
  }

  RoleBuilder& builder_;
  const Scenario& scenario_;
  const Layout& layout_;
  const StageOrder& order_;
  StageTransfers transfers_;
  std::map<AxisGroup, double> padding_;
  std::vector<Bucket> buckets_;
  InstructionIndex last_reduction_ = kNoInstruction, previous_reduction_ = kNoInstruction;
  std::vector<ElementRange> in_flight_;  // the bucket that is being reduced
  std::set<std::int32_t> held_chunks_;   // their whole gradients live
  bool holds_table_ = false;             // of a tied head, before the embedding's backward
};

// The padding of the shards travels too.
void ReplicatedStep::pad(InstructionIndex index) {
  CollectiveCall& call = *builder_.at(index).as<CollectiveCall>();
  const auto padding = padding_.find(call.group.whole());
  if (padding == padding_.end()) return;
  call.message.bytes +=
      static_cast<ByteCount>(padding->second * static_cast<double>(call.message.bytes));
}

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
  pad(index);
  return index;
}

void ReplicatedStep::pass(const Slot& slot, bool last) {
  const InstructionIndex received = transfers_.begin(slot);
  const auto first = static_cast<InstructionIndex>(builder_.role().instructions.size());
  run_slot(slot, last);
  transfers_.end(slot, received, first);
}

// The first forward of a chunk, where parameters are gathered ahead of it.
bool ReplicatedStep::gathers(const Slot& forward) const {
  if (forward.pass != Pass::kForward || !gathers_ahead()) return false;
  const Pipeline pipeline = pipeline_of(layout_, scenario_.micro_batches());
  return forward.micro_batch ==
         micro_batches_of(pipeline, builder_.role().stage, forward.chunk).begin;
}

// Whole passes alone run beside others: one that is cut into buckets runs by itself.
bool ReplicatedStep::runs_beside(const Slot& backward, const Slot& forward, bool last) const {
  if (!layout_.overlap.ep || backward.pass != Pass::kBackward || forward.pass != Pass::kForward) {
    return false;
  }
  const bool reduces = (last || reduces_per_micro_batch()) && reduces_in_backward();
  return backward.micro_batch != forward.micro_batch && !reduces && !gathers(forward);
}

// Both begin when both have received, and send when both have ended (Megatron-LM,
// pipeline_parallel/combined_1f1b.py).
void ReplicatedStep::pass_pair(const Slot& backward, const Slot& forward) {
  const InstructionIndex gradient = transfers_.receive_for(backward);
  const InstructionIndex activation = transfers_.receive_for(forward);
  transfers_.wait_for(gradient);
  transfers_.wait_for(activation);
  transfers_.load_batch(forward, activation);
  const InstructionIndex first =
      builder_.run_whole(backward.pass, backward.chunk, backward.micro_batch);
  builder_.at(first).wait_for(gradient);
  builder_.at(first).wait_for(activation);
  const InstructionIndex second =
      builder_.run_whole(forward.pass, forward.chunk, forward.micro_batch);
  builder_.at(first).as<RunPass>()->beside = forward;
  builder_.at(second).as<RunPass>()->beside = backward;
  transfers_.send_after(backward, second);
  transfers_.remember_send(transfers_.send_after(forward, second));
}

void ReplicatedStep::run_slot(const Slot& slot, bool last) {
  if (gathers(slot)) {
    gathering_forward(slot);
  } else if (slot.pass == Pass::kForward || slot.pass == Pass::kInputGradient) {
    const InstructionIndex run = builder_.run_whole(slot.pass, slot.chunk, slot.micro_batch);
    if (slot.pass == Pass::kInputGradient && sums_whole_step()) hold_whole_chunk(run, slot.chunk);
  } else {
    backward(slot, last || reduces_per_micro_batch());
  }
}

InstructionIndex ReplicatedStep::reduce(const Bucket& bucket, Stream stream,
                                        InstructionIndex after) {
  const bool scatters = layout_.zero >= 1 && !scenario_.rules.sums_whole_gradients;
  const CollectiveKind kind =
      scatters ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  InstructionIndex reduced = kNoInstruction;
  for (const ElementRange& range : bucket.ranges) {
    if (is_alone(range)) continue;
    reduced = builder_.collective("reduce_gradients", stream, Purpose::kGradients, kind, range,
                                  scenario_.training.reduce_precision);
    builder_.at(reduced).wait_for(after);
    pad(reduced);
    // ZeRO-2 holds the bucket itself.
    if (scenario_.rules.copies_flat_gradients && !reduces_per_micro_batch()) {
      builder_.hold_flat(reduced, gradient_bytes(range));
    }
    reduced = builder_.copy_to_host(builder_.sum_copies(reduced));
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
    // Nothing hides the last reduction of a chunk, because the next micro-batch soon writes its
    // first gradients.
    const bool is_last = &bucket == &buckets_.back() || (&bucket + 1)->chunk != bucket.chunk;
    if (!beside || is_last) free_in_flight(last_instruction());
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
  if (layout_.zero != 2) return;
  if (reduces_per_micro_batch()) hold_bucket(bucket, run);
  if (!in_flight_.empty()) builder_.at(run).wait_for(previous_reduction_);
  free_in_flight(run);
  in_flight_ = reduced_of(bucket);
  if (&bucket == &buckets_.back()) holds_table_ = false;
}

// The head adds to a tied table long before the embedding does. A rank that is alone in the group
// of the table, which no expert holds, keeps it.
void ReplicatedStep::hold_bucket(const Bucket& bucket, InstructionIndex run) {
  const bool tied = scenario_.shares_trained_table() && scenario_.model.tied_embeddings &&
                    ends_meet(layout_) && builder_.role().stage == 0 && buckets_.size() > 1 &&
                    size_of(AxisGroup::kData, layout_) > 1;
  const ElementRange table{0, builder_.shape().table_elements()};
  if (tied && &bucket == &buckets_.front() && !holds_table_) {
    hold(run, table);
    holds_table_ = true;
  }
  for (ElementRange range : reduced_of(bucket)) {
    const bool holds_table = holds_table_ && &bucket == &buckets_.back();
    if (holds_table && range.begin == table.begin) range.begin = table.end;
    hold(run, range);
  }
}

// Whole gradients of a chunk live from its first input gradients to its last weight gradients.
void ReplicatedStep::hold_whole_chunk(InstructionIndex run, std::int32_t chunk) {
  if (!held_chunks_.insert(chunk).second) return;
  for (const Bucket& bucket : buckets_) {
    if (bucket.chunk == chunk) hold_bucket(bucket, run);
  }
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

void ReplicatedStep::run_passes() {
  // The last backward of each chunk completes its gradients.
  const std::vector<std::size_t> last_backward =
      last_backwards(order_, builder_.role().chunks.size());
  const auto is_last = [&](std::size_t i) {
    const Slot& slot = order_[i];
    return slot.pass != Pass::kForward && last_backward[static_cast<std::size_t>(slot.chunk)] == i;
  };
  const bool forward_first = rules_of(layout_.schedule).pairs == Pairs::kForwardBackward;
  const std::size_t backward = forward_first ? 1 : 0;  // its place in a pair
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const std::size_t b = i + backward, f = i + 1 - backward;
    if (i + 1 < order_.size() && runs_beside(order_[b], order_[f], is_last(b))) {
      const StageOrder parts = passes_of(builder_, {order_[b]});
      pass_pair(parts.front(), order_[f]);
      // Weight gradients exchange no tokens: where they are apart they follow.
      if (parts.size() > 1) pass(parts.back(), is_last(b));
      ++i;
    } else {
      for (const Slot& part : passes_of(builder_, {order_[i]})) pass(part, is_last(i));
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
