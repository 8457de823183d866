// SPDX-License-Identifier: Apache-2.0
// FSDP (Zhao et al. 2023, section 3) and ZeRO-3: a unit's parameters are gathered before each use,
// one unit ahead of the running one, with at most two gathers in flight (FSDP's rate limiter), and
// its gradients are reduce-scattered behind its backward. Embedding and head make the root unit,
// which stays gathered from the first forward to the last backward of a micro-batch.
//
// DeepSpeed gathers matrix by matrix; it looks ahead, and keeps parameters from a recomputed
// forward to the backward, only below its limit of live parameters. Until 2022 it gathered into a
// list of one tensor per rank, piece by piece, and its host waited for each gather
// (deepspeedai/DeepSpeed pull request 1453 put an end to that).
#include <algorithm>
#include <functional>
#include <vector>

#include "core/assert.h"
#include "program/fp8_weights.h"
#include "program/step.h"

namespace stepcast {
namespace {

class ShardedStep {
 public:
  ShardedStep(RoleBuilder& builder, const StepBlocks& blocks, bool synchronise_each)
      : builder_(builder),
        blocks_(blocks),
        scenario_(builder.scenario()),
        layers_begin_(1),
        layers_end_(builder.blocks(0) - 1),
        synchronise_each_(synchronise_each),
        by_matrix_(scenario_.rules.gathers_by_matrix),
        whole_(static_cast<std::size_t>(builder.blocks(0)), false) {}

  void forward(std::int32_t micro_batch);
  void backward(std::int32_t micro_batch, bool last);

 private:
  bool regathers() const { return scenario_.layout.zero == 3; }
  // So many gathered parameters at once.
  bool may_live(std::int64_t elements) const {
    const std::int64_t most = scenario_.rules.most_live_elements;
    return most == 0 || elements <= most;
  }
  bool looks_ahead() const {
    const bool room = layers_begin_ == layers_end_ || may_live(2 * all_elements(layers_begin_));
    return scenario_.layout.overlap.param_gather && scenario_.rules.prefetch_units > 0 && room;
  }
  // A recomputed forward has released its matrices again by the time that the backward needs them.
  bool gathers_for_recompute() const {
    return scenario_.layout.recompute.mode == RecomputeMode::kFull &&
           !may_live(all_elements(layers_begin_));
  }
  std::int64_t elements(std::int32_t unit) const { return builder_.elements(0, unit, unit + 1); }
  std::int64_t root_elements() const { return elements(0) + elements(builder_.blocks(0) - 1); }
  std::int64_t all_elements(std::int32_t unit) const {
    return elements(unit) + builder_.frozen(0, unit).elements();
  }
  ByteCount gathered_bytes(std::int64_t count) const {
    return count * size_of(scenario_.training.wide());
  }
  // The matrices of a block as the model's code has them: packed query, key and value are one in
  // the GPT form, and apart in the Llama form, as gate and up are. Biases and norms stay whole
  // below the persistence threshold of 1e5 elements (stage3_param_persistence_threshold).
  std::int32_t matrices(std::int32_t unit) const {
    std::int64_t count = 0;
    for (const Parameter& weight : builder_.block(0, unit).weights) {
      if (weight.columns == 1 || weight.borrowed) continue;
      const std::int64_t parts = std::ranges::count_if(weight.parts, std::identity());
      const bool apart = scenario_.model.mlp == Mlp::kSwiglu && parts > 1;
      count += weight.copies * (apart ? parts : 1);
    }
    return static_cast<std::int32_t>(count);
  }
  std::int32_t pieces(std::int32_t matrices) const {
    return by_matrix_ ? std::max(matrices, 1) : 1;
  }
  // Parameters that are gathered together: their place among the flat parameters, and their bytes
  // with those of frozen ones. The root's two blocks stand together.
  struct Unit {
    std::int32_t index;  // of its block; the root has that of the embedding
    ElementRange range;
    ByteCount bytes;
    BlockId cast;         // of its gradients
    std::int32_t pieces;  // collectives that gather or reduce it
  };
  ElementRange range_of(std::int32_t unit) const { return builder_.range(0, unit); }
  ElementRange root_range() const { return {0, root_elements()}; }
  ByteCount frozen_in(std::int32_t unit) const {
    return builder_.frozen(0, unit).bytes(scenario_.training.wide());
  }
  Unit layer_unit(std::int32_t unit) const {
    const ByteCount bytes =
        gathered_bytes(elements(unit)) + frozen_in(unit) - saved_by_fp8(builder_, range_of(unit));
    const BlockId cast =
        blocks_.cast_units.empty() ? BlockId() : blocks_.cast_units[static_cast<std::size_t>(unit)];
    return {unit, range_of(unit), bytes, cast, pieces(matrices(unit))};
  }
  Unit root_unit() const {
    const std::int32_t head = builder_.blocks(0) - 1;
    return {0, root_range(), gathered_bytes(root_elements()) + frozen_in(0) + frozen_in(head),
            blocks_.cast_root, pieces(matrices(0) + matrices(head))};
  }
  InstructionIndex gather(const char* name, const Unit& unit, InstructionIndex limiter);
  InstructionIndex gather_unless_whole(const char* name, const Unit& unit,
                                       InstructionIndex limiter);
  void wait_for_list(InstructionIndex gathered) {
    if (scenario_.rules.gathers_into_lists && gathered != kNone) builder_.host_sync(gathered);
  }
  // Bytes of the gradients of `count` parameters until they are reduced, cast copy included.
  ByteCount gradient_bytes(std::int64_t count, BlockId cast) const {
    const std::int64_t wide = cast.valid() ? size_of(scenario_.training.reduce_precision) : 0;
    return gathered_bytes(count) + count * wide;
  }
  void reduce(const char* name, const Unit& unit, InstructionIndex after);
  void release(InstructionIndex run, const Unit& unit);
  void hold_gradients(InstructionIndex run, const Unit& unit, bool first, bool reduces);

  RoleBuilder& builder_;
  const StepBlocks& blocks_;
  const Scenario& scenario_;
  std::int32_t layers_begin_, layers_end_;
  bool synchronise_each_;
  bool by_matrix_;
  std::vector<bool> whole_;  // by block: gathered, and not freed yet
  // Their reduction overlaps the next unit's backward.
  ElementRange in_flight_;
  ByteCount bytes_in_flight_ = 0;
};

InstructionIndex ShardedStep::gather(const char* name, const Unit& unit, InstructionIndex limiter) {
  const InstructionIndex index =
      builder_.collective(name, Stream::kGather, Purpose::kParameters, CollectiveKind::kAllGather,
                          unit.range, scenario_.training.wide(), unit.pieces);
  Instruction& instruction = builder_.at(index);
  instruction.as<CollectiveCall>()->message.bytes = unit.bytes;  // with the frozen ones
  instruction.wait_for(limiter);
  instruction.birth[static_cast<std::size_t>(MemoryCategory::kBuffers)] = unit.bytes;
  return index;
}

// The root stays whole from a forward to its backward, and so does every unit that is not freed in
// between; where the order has other forwards there (gpipe), these find it as it is.
InstructionIndex ShardedStep::gather_unless_whole(const char* name, const Unit& unit,
                                                  InstructionIndex limiter) {
  if (whole_[static_cast<std::size_t>(unit.index)]) return kNone;
  whole_[static_cast<std::size_t>(unit.index)] = true;
  return gather(name, unit, limiter);
}

void ShardedStep::release(InstructionIndex run, const Unit& unit) {
  whole_[static_cast<std::size_t>(unit.index)] = false;
  builder_.at(run).free_parameters(unit.range, unit.bytes);
}

void ShardedStep::reduce(const char* name, const Unit& unit, InstructionIndex after) {
  if (unit.range.size() == 0) return;
  const DataType type = scenario_.training.reduce_precision;
  if (unit.cast.valid()) after = builder_.run_block(unit.cast);
  const InstructionIndex index =
      builder_.collective(name, Stream::kReduce, Purpose::kGradients,
                          CollectiveKind::kReduceScatter, unit.range, type, unit.pieces);
  builder_.at(index).wait_for(after);
  builder_.sum_copies(index);
}

// A unit's gradients are born with its first backward; reduced ones live through the next unit's,
// which runs while they are reduced.
void ShardedStep::hold_gradients(InstructionIndex run, const Unit& unit, bool first, bool reduces) {
  const ByteCount bytes = gradient_bytes(unit.range.size(), unit.cast);
  if (first) builder_.at(run).hold_gradients(unit.range, bytes);
  if (!reduces) return;
  builder_.at(run).free_gradients(in_flight_, bytes_in_flight_);
  in_flight_ = unit.range;
  bytes_in_flight_ = bytes;
}

void ShardedStep::forward(std::int32_t micro_batch) {
  const std::int32_t head = builder_.blocks(0) - 1;
  const bool ahead = looks_ahead();
  builder_.load_batch(builder_.last_run());
  const InstructionIndex root =
      gather_unless_whole("gather_root", root_unit(), builder_.last_run());
  InstructionIndex next =
      layers_begin_ < layers_end_
          ? gather_unless_whole("gather_unit", layer_unit(layers_begin_), builder_.last_run())
          : kNone;
  const InstructionIndex embedding = builder_.run(Pass::kForward, 0, micro_batch, 0, 1);
  builder_.at(embedding).wait_for(root);
  InstructionIndex before = kNone, running = embedding;
  for (std::int32_t unit = layers_begin_; unit < layers_end_; ++unit) {
    const InstructionIndex gathered = next;
    // The gather is issued ahead of this unit's kernels, with at most two in flight.
    if (ahead && unit + 1 < layers_end_) {
      next = gather_unless_whole("gather_unit", layer_unit(unit + 1),
                                 before == kNone ? embedding : before);
    }
    before = running;
    wait_for_list(gathered);
    running = builder_.run(Pass::kForward, 0, micro_batch, unit, unit + 1);
    builder_.at(running).wait_for(gathered);
    if (regathers()) release(running, layer_unit(unit));
    if (!ahead && unit + 1 < layers_end_) {
      next = gather_unless_whole("gather_unit", layer_unit(unit + 1), running);
    }
  }
  builder_.run(Pass::kForward, 0, micro_batch, head, head + 1);
}

void ShardedStep::backward(std::int32_t micro_batch, bool last) {
  const std::int32_t head = builder_.blocks(0) - 1;
  const bool ahead = looks_ahead();
  const bool reduces = synchronise_each_ || last;
  // Without a reduction in each micro-batch, whole gradients live from the first to the last.
  const bool first = synchronise_each_ || micro_batch == 0;
  const auto gather_backward = [&](std::int32_t unit, InstructionIndex limiter) {
    const InstructionIndex once = gather_unless_whole("gather_unit", layer_unit(unit), limiter);
    if (!regathers() || !gathers_for_recompute()) return once;
    const InstructionIndex second = gather("gather_unit_again", layer_unit(unit), limiter);
    builder_.at(second).birth = {};  // in the place of the first
    return second;
  };
  const InstructionIndex root =
      gather_unless_whole("gather_root", root_unit(), builder_.last_run());
  InstructionIndex next =
      layers_begin_ < layers_end_ ? gather_backward(layers_end_ - 1, builder_.last_run()) : kNone;
  InstructionIndex before = builder_.last_run();
  InstructionIndex running = builder_.run(Pass::kBackward, 0, micro_batch, head, head + 1);
  builder_.at(running).wait_for(root);
  // The head's gradients wait for the rest of their unit.
  if (first) builder_.at(running).hold_gradients(range_of(head), gathered_bytes(elements(head)));
  for (std::int32_t unit = layers_end_; unit-- > layers_begin_;) {
    const InstructionIndex gathered = next;
    if (ahead && unit > layers_begin_) next = gather_backward(unit - 1, before);
    before = running;
    wait_for_list(gathered);
    running = builder_.run(Pass::kBackward, 0, micro_batch, unit, unit + 1);
    builder_.at(running).wait_for(gathered);
    const Unit own = layer_unit(unit);
    hold_gradients(running, own, first, reduces);
    release(running, own);
    if (reduces) reduce("reduce_unit", own, running);
    if (!ahead && unit > layers_begin_) next = gather_backward(unit - 1, running);
  }
  const InstructionIndex embedding = builder_.run(Pass::kBackward, 0, micro_batch, 0, 1);
  hold_gradients(embedding, root_unit(), first, reduces);
  if (first) {
    Instruction& run = builder_.at(embedding);
    run.windows.make().holds_gradients = {range_of(0)};
    run.birth[static_cast<std::size_t>(MemoryCategory::kBuffers)] -= gathered_bytes(elements(head));
  }
  release(embedding, root_unit());
  if (!reduces) return;
  reduce("reduce_root", root_unit(), embedding);
  // The last reduction ends before the update.
  const auto end = static_cast<InstructionIndex>(builder_.role().instructions.size()) - 1;
  builder_.at(end).free_gradients(in_flight_, bytes_in_flight_);
  in_flight_ = {};
  bytes_in_flight_ = 0;
}

}  // namespace

void arrange_sharded_step(RoleBuilder& builder, const StageOrder& order, const StepBlocks& blocks) {
  const Scenario& scenario = builder.scenario();
  STEPCAST_ASSERT(builder.block(0, 0).form == BackwardForm::kWhole,
                  "without a pipeline nobody waits for input gradients alone");
  ShardedStep step(builder, blocks, !scenario.training.no_sync);
  builder.run_block(blocks.zero_gradients);
  const auto last = static_cast<std::int32_t>(scenario.micro_batches() - 1);
  for (const Slot& slot : order) {
    if (slot.pass == Pass::kForward) {
      step.forward(slot.micro_batch);
    } else {
      step.backward(slot.micro_batch, slot.micro_batch == last);
    }
  }
  arrange_update(builder, blocks);
}

}  // namespace stepcast
