// SPDX-License-Identifier: Apache-2.0
// FSDP (Zhao et al. 2023, section 3) and ZeRO-3: a unit's parameters are gathered before each use,
// one unit ahead of the running one, with at most two gathers in flight (FSDP's rate limiter), and
// its gradients are reduce-scattered behind its backward. Without a pipeline embedding and head
// make the root unit, which stays gathered from the first forward to the last backward of a
// micro-batch. Experts are gathered and reduced beside their layer, over their own data ranks.
//
// On a pipeline torch.distributed.pipelining (stage.py, backward_maybe_with_nosync) switches off
// reduction and resharding behind a backward: units stay gathered, whole gradients are summed, and
// a chunk's last backward reduces all of its units one after the other.
//
// DeepSpeed gathers matrix by matrix; it looks ahead, and keeps parameters from a recomputed
// forward to the backward, only below its limit of live parameters. Until 2022 it gathered into a
// list of one tensor per rank, piece by piece, and its host waited for each gather
// (deepspeedai/DeepSpeed pull request 1453 put an end to that). With Muon it sums whole gradients.
#include <algorithm>
#include <vector>

#include "layout/scenario.h"
#include "memory/states.h"
#include "program/sharded_units.h"
#include "program/stage_passes.h"
#include "program/step.h"

namespace stepcast {
namespace {

class ShardedStep {
 public:
  ShardedStep(RoleBuilder& builder, const StepBlocks& blocks)
      : builder_(builder),
        blocks_(blocks),
        scenario_(builder.scenario()),
        rules_(scenario_.rules),
        transfers_(builder),
        chunks_(units_of(builder)),
        keeps_units_(rules_.keeps_units),
        synchronise_each_(!scenario_.training.no_sync && !keeps_units_ &&
                          !splits_backward(builder)) {
    for (const ChunkUnits& chunk : chunks_) states_.emplace_back(chunk.units.size());
  }

  void pass(const Slot& slot, bool last);

 private:
  struct State {
    bool whole = false;  // gathered, and not freed yet
    bool held = false;   // its whole gradients live
  };

  bool regathers() const { return scenario_.layout.zero == 3; }
  // So many gathered parameters at once.
  bool may_live(std::int64_t elements) const {
    return rules_.most_live_elements == 0 || elements <= rules_.most_live_elements;
  }
  // A layer of the chunk, by which a limit of live parameters goes; null: there is none.
  const Unit* layer(std::int32_t chunk) const {
    const std::int32_t begin = has_root(scenario_.layout) ? 1 : 0;
    const auto end = static_cast<std::int32_t>(units(chunk).of_block.size()) - begin;
    return begin < end ? &unit(chunk, begin) : nullptr;
  }
  std::int64_t all_elements(std::int32_t chunk, const Unit& unit) const {
    return unit.elements() + builder_.frozen(chunk, unit.first_block).elements();
  }
  bool looks_ahead(std::int32_t chunk) const {
    const Unit* own = layer(chunk);
    const bool room = own == nullptr || may_live(2 * all_elements(chunk, *own));
    return scenario_.layout.overlap.param_gather && rules_.prefetch_units > 0 && room;
  }
  // A recomputed forward has released its matrices again by the time that the backward needs them.
  bool gathers_for_recompute(std::int32_t chunk) const {
    const Unit* own = layer(chunk);
    return scenario_.layout.recompute.mode == RecomputeMode::kFull && own != nullptr &&
           !may_live(all_elements(chunk, *own));
  }

  const ChunkUnits& units(std::int32_t chunk) const {
    return chunks_[static_cast<std::size_t>(chunk)];
  }
  const Unit& unit(std::int32_t chunk, std::int32_t block) const {
    return units(chunk).units[units(chunk).of_block[static_cast<std::size_t>(block)]];
  }
  State& state(std::int32_t chunk, const Unit& unit) {
    const auto index = static_cast<std::size_t>(&unit - units(chunk).units.data());
    return states_[static_cast<std::size_t>(chunk)][index];
  }
  template <class Property>
  bool all_units(std::int32_t chunk, Property property) const {
    return std::ranges::all_of(states_[static_cast<std::size_t>(chunk)], property);
  }
  std::int64_t element() const { return size_of(scenario_.training.wide()); }
  std::int64_t reduced() const { return size_of(scenario_.training.reduce_precision); }
  // Gradients that wait for a later reduction are summed in the wider type.
  bool sums_wide() const { return sums_wide_gradients(scenario_); }
  bool casts() const { return !sums_wide() && reduced() > element(); }
  // Bytes of whole gradients until they are reduced, cast copy included.
  std::int64_t gradient_width() const {
    return sums_wide() ? std::max(reduced(), element()) : element() + (casts() ? reduced() : 0);
  }

  InstructionIndex reload(const UnitPart& part, InstructionIndex limiter);
  InstructionIndex gather(const char* name, const Unit& unit, InstructionIndex limiter);
  InstructionIndex gather_unless_whole(const char* name, std::int32_t chunk, const Unit& unit,
                                       InstructionIndex limiter);
  InstructionIndex gather_for_backward(std::int32_t chunk, const Unit& unit,
                                       InstructionIndex limiter);
  void wait_for_list(InstructionIndex gathered) {
    if (rules_.gathers_into_lists && gathered != kNoInstruction) builder_.host_sync(gathered);
  }
  InstructionIndex run(const Slot& slot, std::int32_t begin, std::int32_t end);
  void copy_out(const Unit& unit, InstructionIndex gathered);
  void release(InstructionIndex run, std::int32_t chunk, const Unit& unit);
  void hold(InstructionIndex run, std::int32_t chunk, const Unit& unit);
  void hold_early(InstructionIndex run, std::int32_t head);
  void reduce(const char* name, const Unit& unit, InstructionIndex after);
  void put_in_flight(InstructionIndex run, const Unit& unit);
  void free_in_flight(InstructionIndex behind);

  void forward(const Slot& slot);
  void backward(const Slot& slot, bool last);
  void weight_gradients(const Slot& slot, bool last);
  InstructionIndex backward_of_layers(const Slot& slot, bool reduces, std::int32_t end,
                                      InstructionIndex next, InstructionIndex before,
                                      InstructionIndex running);
  void behind_backward(const Slot& slot, const Unit& unit, InstructionIndex run, bool reduces);
  void reduce_chunk(std::int32_t chunk);

  RoleBuilder& builder_;
  const StepBlocks& blocks_;
  const Scenario& scenario_;
  const FrameworkRules& rules_;
  StageTransfers transfers_;
  std::vector<ChunkUnits> chunks_;
  std::vector<std::vector<State>> states_;
  bool keeps_units_;
  bool synchronise_each_;
  // Its reduction overlaps the next unit's backward.
  const Unit* in_flight_ = nullptr;
};

// A shard that lies in host memory, or on a disk, comes as it is stored there: frozen weights and
// those that are gathered in 16 bits as they are gathered, or in fp32.
InstructionIndex ShardedStep::reload(const UnitPart& part, InstructionIndex limiter) {
  const Offload& offload = scenario_.layout.offload;
  if (offload.parameters == 0) return kNoInstruction;
  const std::int64_t ranks = shard_ranks(scenario_, builder_.role().group_of(part.range));
  const std::int64_t stored = rules_.bf16_parameters ? element() : size_of(DataType::kFp32);
  const ByteCount whole = part.bytes + part.range.size() * (stored - element());
  const ByteCount bytes = (whole + ranks - 1) / ranks;
  const bool on_disk = offload.parameter_device == OffloadDevice::kNvme;
  const InstructionIndex index = builder_.copy_states(
      {{CopyDirection::kFromHost, bytes}, Purpose::kParameters, {part.range}, on_disk}, limiter);
  builder_.at(index).birth[static_cast<std::size_t>(MemoryCategory::kBuffers)] = bytes;
  return index;
}

// The last of its collectives: all run on one stream.
InstructionIndex ShardedStep::gather(const char* name, const Unit& unit, InstructionIndex limiter) {
  InstructionIndex index = kNoInstruction;
  for (const UnitPart& part : unit.parts) {
    const std::int32_t pieces = rules_.gathers_by_matrix ? std::max(part.matrices, 1) : 1;
    const InstructionIndex reloaded = reload(part, limiter);
    index =
        builder_.collective(name, Stream::kGather, Purpose::kParameters, CollectiveKind::kAllGather,
                            part.range, scenario_.training.wide(), pieces);
    Instruction& instruction = builder_.at(index);
    instruction.as<CollectiveCall>()->message.bytes = part.bytes;  // with the frozen ones
    instruction.wait_for(limiter);
    instruction.wait_for(reloaded);
    if (reloaded != kNoInstruction) {
      const MemoryParts& shard = builder_.at(reloaded).birth;
      std::ranges::copy(shard, instruction.death.begin());
    }
    instruction.birth[static_cast<std::size_t>(MemoryCategory::kBuffers)] = part.bytes;
  }
  return index;
}

// The root stays whole from a forward to its backward, and so does every unit that is not freed in
// between; where the order has other forwards there (gpipe), these find it as it is.
InstructionIndex ShardedStep::gather_unless_whole(const char* name, std::int32_t chunk,
                                                  const Unit& unit, InstructionIndex limiter) {
  State& own = state(chunk, unit);
  if (own.whole) return kNoInstruction;
  own.whole = true;
  return gather(name, unit, limiter);
}

InstructionIndex ShardedStep::gather_for_backward(std::int32_t chunk, const Unit& unit,
                                                  InstructionIndex limiter) {
  const InstructionIndex once = gather_unless_whole("gather_unit", chunk, unit, limiter);
  if (!regathers() || !gathers_for_recompute(chunk)) return once;
  const auto first = static_cast<InstructionIndex>(builder_.role().instructions.size());
  const InstructionIndex second = gather("gather_unit_again", unit, limiter);
  for (InstructionIndex i = first; i <= second; ++i) {
    if (builder_.at(i).is<CollectiveCall>())
      builder_.at(i).birth = {};  // in the place of the first
  }
  return second;
}

// While it runs a unit's gradients lie beside those that they are added to.
InstructionIndex ShardedStep::run(const Slot& slot, std::int32_t begin, std::int32_t end) {
  const InstructionIndex index = builder_.run(slot.pass, slot.chunk, slot.micro_batch, begin, end);
  const bool completes = slot.pass == Pass::kBackward || slot.pass == Pass::kWeightGradient;
  if (!completes || !sums_wide() || reduced() <= element()) return index;
  std::int64_t most = 0;
  for (std::int32_t block = begin; block < end; ++block) {
    most = std::max(most, builder_.elements(slot.chunk, block, block + 1));
  }
  builder_.hold_flat(index, most * element());
  return index;
}

// A unit that is not gathered in each pass is copied out where it is gathered.
void ShardedStep::copy_out(const Unit& unit, InstructionIndex gathered) {
  const auto copy = blocks_.gathered_copies.find(unit.bytes());
  if (gathered == kNoInstruction || copy == blocks_.gathered_copies.end()) return;
  builder_.at(builder_.run_block(copy->second)).wait_for(gathered);
}

void ShardedStep::release(InstructionIndex run, std::int32_t chunk, const Unit& unit) {
  state(chunk, unit).whole = false;
  for (const UnitPart& part : unit.parts) {
    builder_.at(run).free_parameters(part.range, part.bytes);
  }
}

void ShardedStep::reduce(const char* name, const Unit& unit, InstructionIndex after) {
  for (const UnitPart& part : unit.parts) {
    if (part.range.size() == 0) continue;
    const auto& before = casts() ? blocks_.casts : blocks_.reduced_copies;
    const auto block = before.find(part.range.size());
    if (block != before.end()) {
      after = builder_.run_block(block->second);
    }
    const bool whole = rules_.sums_whole_gradients;
    const std::int32_t pieces = rules_.gathers_by_matrix && !whole ? std::max(part.matrices, 1) : 1;
    const InstructionIndex index =
        builder_.collective(name, Stream::kReduce, Purpose::kGradients,
                            whole ? CollectiveKind::kAllReduce : CollectiveKind::kReduceScatter,
                            part.range, scenario_.training.reduce_precision, pieces);
    builder_.at(index).wait_for(after);
    builder_.copy_to_host(builder_.sum_copies(index));
  }
}

// A unit's gradients are born with its first backward.
void ShardedStep::hold(InstructionIndex run, std::int32_t chunk, const Unit& unit) {
  State& own = state(chunk, unit);
  if (own.held) return;
  own.held = true;
  for (const UnitPart& part : unit.parts) {
    builder_.at(run).hold_gradients(part.range, part.range.size() * gradient_width());
  }
}

// Reduced gradients live through the next unit's backward, which runs while they are reduced.
void ShardedStep::put_in_flight(InstructionIndex run, const Unit& unit) {
  free_in_flight(run);
  in_flight_ = &unit;
}

void ShardedStep::free_in_flight(InstructionIndex behind) {
  if (in_flight_ == nullptr) return;
  for (const UnitPart& part : in_flight_->parts) {
    builder_.at(behind).free_gradients(part.range, part.range.size() * gradient_width());
  }
  in_flight_ = nullptr;
}

void ShardedStep::forward(const Slot& slot) {
  const std::int32_t c = slot.chunk, blocks = builder_.blocks(c);
  const bool root = has_root(scenario_.layout), ahead = looks_ahead(c);
  if (keeps_units_ && !regathers() && all_units(c, &State::whole)) {
    run(slot, 0, blocks);
    return;
  }
  const std::int32_t begin = root ? 1 : 0, end = root ? blocks - 1 : blocks;
  InstructionIndex start = builder_.last_run();
  const InstructionIndex ends =
      root ? gather_unless_whole("gather_root", c, unit(c, 0), start) : kNoInstruction;
  const auto gather_next = [&](std::int32_t block, InstructionIndex limiter) {
    return gather_unless_whole("gather_unit", c, unit(c, block), limiter);
  };
  InstructionIndex next = begin < end ? gather_next(begin, start) : kNoInstruction;
  if (root) {
    copy_out(unit(c, 0), ends);
    start = run(slot, 0, 1);
    builder_.at(start).wait_for(ends);
  }
  InstructionIndex before = kNoInstruction, running = start;
  for (std::int32_t block = begin; block < end; ++block) {
    const InstructionIndex gathered = next;
    // The gather is issued ahead of this unit's kernels, with at most two in flight.
    if (ahead && block + 1 < end) {
      next = gather_next(block + 1, before == kNoInstruction ? start : before);
    }
    before = running;
    wait_for_list(gathered);
    copy_out(unit(c, block), gathered);
    running = run(slot, block, block + 1);
    builder_.at(running).wait_for(gathered);
    if (regathers()) release(running, c, unit(c, block));
    if (!ahead && block + 1 < end) next = gather_next(block + 1, running);
  }
  if (root) run(slot, blocks - 1, blocks);
}

// The head's gradients wait for the rest of their unit.
void ShardedStep::hold_early(InstructionIndex run, std::int32_t head) {
  const std::int64_t width = sums_wide() ? gradient_width() : element();
  Instruction& instruction = builder_.at(run);
  for (const FlatStretch& stretch : builder_.role().stretches) {
    const ElementRange own = builder_.range(0, head, stretch.group);
    instruction.hold_gradients(own, own.size() * width);
  }
}

// Holds, frees and reduces what a backward has used and made.
void ShardedStep::behind_backward(const Slot& slot, const Unit& unit, InstructionIndex run,
                                  bool reduces) {
  hold(run, slot.chunk, unit);
  if (!keeps_units_) release(run, slot.chunk, unit);
  if (!reduces || keeps_units_) return;
  put_in_flight(run, unit);
  state(slot.chunk, unit).held = false;
  reduce("reduce_unit", unit, run);
}

InstructionIndex ShardedStep::backward_of_layers(const Slot& slot, bool reduces, std::int32_t end,
                                                 InstructionIndex next, InstructionIndex before,
                                                 InstructionIndex running) {
  const std::int32_t c = slot.chunk, begin = has_root(scenario_.layout) ? 1 : 0;
  const bool ahead = looks_ahead(c);
  for (std::int32_t block = end; block-- > begin;) {
    const InstructionIndex gathered = next;
    if (ahead && block > begin) next = gather_for_backward(c, unit(c, block - 1), before);
    before = running;
    wait_for_list(gathered);
    copy_out(unit(c, block), gathered);
    running = run(slot, block, block + 1);
    builder_.at(running).wait_for(gathered);
    behind_backward(slot, unit(c, block), running, reduces);
    if (!ahead && block > begin) next = gather_for_backward(c, unit(c, block - 1), running);
  }
  return running;
}

void ShardedStep::backward(const Slot& slot, bool last) {
  const std::int32_t c = slot.chunk, blocks = builder_.blocks(c);
  const bool is_whole = slot.pass == Pass::kBackward;  // weight gradients too
  const bool reduces = is_whole && (synchronise_each_ || last);
  const auto is_ready = [](const State& own) { return own.whole && own.held; };
  if (keeps_units_ && all_units(c, is_ready)) {
    run(slot, 0, blocks);
    return;
  }
  const bool root = has_root(scenario_.layout);
  const std::int32_t begin = root ? 1 : 0, end = root ? blocks - 1 : blocks;
  const InstructionIndex start = builder_.last_run();
  const InstructionIndex ends =
      root ? gather_unless_whole("gather_root", c, unit(c, 0), start) : kNoInstruction;
  const InstructionIndex next =
      begin < end ? gather_for_backward(c, unit(c, end - 1), start) : kNoInstruction;
  if (!root) {
    backward_of_layers(slot, reduces, end, next, start, start);
    return;
  }
  const Unit& both = unit(c, 0);
  const bool first = !state(c, both).held;
  const InstructionIndex head = run(slot, blocks - 1, blocks);
  builder_.at(head).wait_for(ends);
  if (first) hold_early(head, blocks - 1);
  backward_of_layers(slot, reduces, end, next, start, head);
  const InstructionIndex embedding = run(slot, 0, 1);
  hold(embedding, c, both);
  if (first) {
    // The head's are there.
    Instruction& own = builder_.at(embedding);
    const Instruction& early = builder_.at(head);
    constexpr auto kBuffers = static_cast<std::size_t>(MemoryCategory::kBuffers);
    std::int64_t held = 0;
    own.windows.make().holds_gradients.clear();
    for (const FlatStretch& stretch : builder_.role().stretches) {
      const ElementRange range = builder_.range(0, 0, stretch.group);
      if (range.size() > 0) own.windows.make().holds_gradients.push_back(range);
    }
    for (const ElementRange& range : early.windows.get().holds_gradients) held += range.size();
    own.birth[kBuffers] -= held * (sums_wide() ? gradient_width() : element());
  }
  release(embedding, c, both);
  if (!reduces) return;
  put_in_flight(embedding, both);
  state(c, both).held = false;
  reduce("reduce_root", both, embedding);
  // The last reduction ends before the update.
  free_in_flight(static_cast<InstructionIndex>(builder_.role().instructions.size()) - 1);
}

// Norms' gradients have come with the input gradients, so whole ones are there.
void ShardedStep::weight_gradients(const Slot& slot, bool last) {
  const std::int32_t c = slot.chunk, blocks = builder_.blocks(c);
  if (!last || keeps_units_) {
    run(slot, 0, blocks);
    return;
  }
  for (std::int32_t block = blocks; block-- > 0;) {
    const InstructionIndex index = run(slot, block, block + 1);
    const Unit& own = unit(c, block);
    put_in_flight(index, own);
    state(c, own).held = false;
    reduce("reduce_unit", own, index);
  }
}

// One unit after the other, behind the last backward.
void ShardedStep::reduce_chunk(std::int32_t chunk) {
  const InstructionIndex run = builder_.last_run();
  for (const Unit& unit : units(chunk).units) release(run, chunk, unit);
  for (const Unit& unit : units(chunk).units) {
    state(chunk, unit).held = false;
    reduce("reduce_unit", unit, run);
    in_flight_ = &unit;
    free_in_flight(static_cast<InstructionIndex>(builder_.role().instructions.size()) - 1);
  }
}

void ShardedStep::pass(const Slot& slot, bool last) {
  const InstructionIndex received = transfers_.begin(slot);
  const auto first = static_cast<InstructionIndex>(builder_.role().instructions.size());
  if (slot.pass == Pass::kForward) {
    forward(slot);
  } else if (slot.pass == Pass::kWeightGradient) {
    weight_gradients(slot, last);
  } else {
    backward(slot, last);
  }
  const auto end = static_cast<InstructionIndex>(builder_.role().instructions.size());
  transfers_.end(slot, received, first);
  // The next micro-batch soon writes its first gradients.
  free_in_flight(end - 1);
  if (last && keeps_units_) reduce_chunk(slot.chunk);
}

}  // namespace

void arrange_sharded_step(RoleBuilder& builder, const StageOrder& order, const StepBlocks& blocks) {
  ShardedStep step(builder, blocks);
  builder.run_block(blocks.zero_gradients);
  const StageOrder passes = passes_of(builder, order);
  const std::vector<std::size_t> last = last_backwards(passes, builder.chunks());
  for (std::size_t i = 0; i < passes.size(); ++i) {
    step.pass(passes[i], last[static_cast<std::size_t>(passes[i].chunk)] == i);
  }
  arrange_update(builder, blocks);
}

}  // namespace stepcast
