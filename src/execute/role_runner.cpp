// SPDX-License-Identifier: Apache-2.0
#include "execute/role_runner.h"

#include <algorithm>
#include <cmath>

#include "core/assert.h"

namespace stepcast {
namespace {

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

constexpr auto kWorkspace = static_cast<std::size_t>(MemoryCategory::kWorkspace);

}  // namespace

RoleRunner::RoleRunner(const Scenario& scenario, const Program& program, const RankGrid& grid,
                       RankId rank, Communicator* world, const ExecutorOptions& options)
    : scenario_(scenario),
      program_(program),
      grid_(grid),
      point_(grid.point(rank)),
      role_(program.roles[static_cast<std::size_t>(point_.pp)]),
      shape_(scenario),
      parameters_(placed_parameters(scenario, program, role_)),
      options_(options),
      groups_(program, grid, options.communicate ? world : nullptr, rank),
      state_(scenario, role_, static_cast<int>(grid.group_size(GroupKind::kData)), point_.dp,
             memory_),
      text_(options.seed, scenario.model.vocab, std::min(options.fan_out, scenario.model.vocab)) {
  for (const Block& block : program.blocks) lives_.push_back(trace_lives(block));
  if (role_.persistent[kWorkspace] > 0) {
    placeholder_ = memory_.make(MemoryCategory::kWorkspace, role_.persistent[kWorkspace]);
  }
  counted_elsewhere_ = counted_elsewhere();
  state_.initialise(scenario, program, role_, options.seed, point_.tp);
}

StepRecord RoleRunner::step() {
  ++step_;
  totals_ = {};
  events_.assign(role_.instructions.size(), nullptr);
  micro_batches_.clear();
  const Clock::time_point begin = Clock::now();
  for (std::size_t i = 0; i < role_.instructions.size(); ++i) issue(static_cast<std::int32_t>(i));
  engine_.wait(events_);
  StepRecord out;
  Clock::time_point end = begin;
  for (const EventHandle& event : events_) {
    end = std::max(end, event->end);
    out.spans.push_back({seconds_between(begin, event->start), seconds_between(begin, event->end)});
  }
  out.seconds = seconds_between(begin, end);
  out.loss_sum = totals_.loss_sum;
  out.gradient_norm = std::sqrt(totals_.squared_norm);
  return out;
}

std::vector<EventHandle> RoleRunner::awaited(const Instruction& what) const {
  std::vector<EventHandle> out;
  for (const std::int32_t wait : what.waits) {
    if (wait >= 0) out.push_back(events_[static_cast<std::size_t>(wait)]);
  }
  return out;
}

// What the host does with an instruction: kernels and everything on their stream run here and now,
// transfers on other streams are handed over.
void RoleRunner::issue(std::int32_t index) {
  const Instruction& what = role_.instructions[static_cast<std::size_t>(index)];
  EventHandle& event = events_[static_cast<std::size_t>(index)];
  const bool here = what.stream == Stream::kCompute || what.stream == Stream::kHost;
  if (here) {
    engine_.wait(awaited(what));
    event = std::make_shared<Event>();
    event->start = Clock::now();
    if (what.kind == InstructionKind::kRun) run(what);
    if (what.kind == InstructionKind::kCollective) {
      const Transfer transfer = collective(what);
      if (const auto request = transfer.start()) request->wait();
      if (transfer.finish) transfer.finish();
    }
    engine_.end(event);
  } else {
    Transfer transfer = what.kind == InstructionKind::kSend      ? send(what)
                        : what.kind == InstructionKind::kReceive ? receive(what)
                                                                 : collective(what);
    transfer.waits = awaited(what);
    event = engine_.post(what.stream, std::move(transfer));
  }
  if (what.kind == InstructionKind::kCollective &&
      what.collective == CollectiveKind::kReduceScatter) {
    reductions_[what.elements.begin] = event;
  }
  close_windows(what);
}

void RoleRunner::run(const Instruction& what) {
  open_windows(what);
  if (what.chunk < 0) {
    run_unplaced(program_.block(BlockId(what.block_begin)));
  } else {
    run_chunk(what);
  }
}

// The elements that are reduced together with `range`.
ElementRange RoleRunner::unit_of(ElementRange range) const {
  for (const Instruction& instruction : role_.instructions) {
    const bool reduces = instruction.kind == InstructionKind::kCollective &&
                         instruction.collective == CollectiveKind::kReduceScatter &&
                         instruction.group == GroupKind::kData;
    if (reduces && instruction.elements.begin <= range.begin &&
        instruction.elements.end >= range.end) {
      return instruction.elements;
    }
  }
  return range;
}

void RoleRunner::open_windows(const Instruction& what) {
  for (const ElementRange& range : what.holds_gradients) {
    if (range.size() > 0) state_.gradient_windows().open(range, unit_of(range));
  }
}

void RoleRunner::close_windows(const Instruction& what) {
  if (what.frees_parameters.size() > 0) state_.parameter_windows().close(what.frees_parameters);
  if (what.frees_gradients.size() == 0) return;
  // They live until their reduction has ended.
  for (const auto& [begin, event] : reductions_) {
    if (begin >= what.frees_gradients.begin && begin < what.frees_gradients.end) {
      engine_.wait(event);
    }
  }
  state_.gradient_windows().close(what.frees_gradients);
}

const MicroBatch& RoleRunner::micro_batch(std::int32_t index) {
  const auto [found, fresh] = micro_batches_.try_emplace(index);
  MicroBatch& batch = found->second;
  if (!fresh) return batch;
  const std::int64_t sequence = shape_.sequence;
  std::vector<std::int64_t> text(static_cast<std::size_t>(sequence + 1));
  for (std::int64_t b = 0; b < shape_.batch; ++b) {
    const std::int64_t first = (index * scenario_.layout.dp + point_.dp) * shape_.batch + b;
    text_.sequence((step_ - 1) * scenario_.training.global_batch + first, text);
    batch.tokens.insert(batch.tokens.end(), text.begin(), text.end() - 1);
    batch.targets.insert(batch.targets.end(), text.begin() + 1, text.end());
  }
  return batch;
}

void RoleRunner::run_unplaced(const Block& block) {
  BlockInstance instance;
  run_operations(block, {0, 0}, instance, block.forward,
                 std::vector<OperationLives>(block.forward.size()), nullptr);
}

void RoleRunner::run_chunk(const Instruction& what) {
  const bool forward = is_forward(what);
  const std::int32_t count = what.block_end - what.block_begin;
  for (std::int32_t i = 0; i < count; ++i) {
    run_block(what, forward ? what.block_begin + i : what.block_end - 1 - i);
  }
}

// Takes the activation (or gradient) of the block before from `arriving_` or `leaving_`, leaves its
// own in `leaving_`.
void RoleRunner::run_block(const Instruction& what, std::int32_t index) {
  const bool forward = is_forward(what);
  const auto chunk = static_cast<std::size_t>(what.chunk), at = static_cast<std::size_t>(index);
  const Chunk& own = role_.chunks[chunk];
  const Block& block = program_.block(own.blocks[at]);
  const BlockLives& lives = lives_[own.blocks[at].index()];
  BlockInstance& instance = instances_[{what.chunk, index, what.micro_batch}];
  instance.buffers.resize(block.buffers.size());
  const bool first = forward ? index == 0 : at + 1 == own.blocks.size();
  const PassKey key{forward, what.chunk, what.micro_batch};
  const MicroBatch& batch = micro_batch(what.micro_batch);

  const BufferId in = forward ? block.input : block.output_gradient;
  if (in.valid()) {
    Tensor& slot = instance.buffers[in.index()];
    if (forward && block.name == "embedding") {
      const Buffer& tokens = block.buffers[in.index()];
      slot = memory_.make(tokens.category, tokens.size());
      std::copy(batch.tokens.begin(), batch.tokens.end(), slot->integers());
    } else {
      auto& source = first ? arriving_ : leaving_;
      slot = std::move(source[key]);
      source.erase(key);
    }
  }
  const BlockPlace place{role_.offsets[chunk][at], role_.offsets.front().front()};
  run_operations(block, place, instance, forward ? block.forward : block.backward,
                 forward ? lives.forward : lives.backward, &batch);
  const BufferId out = forward ? block.output : block.input_gradient;
  if (out.valid()) leaving_[key] = std::move(instance.buffers[out.index()]);
  if (!forward) instances_.erase({what.chunk, index, what.micro_batch});
}

void RoleRunner::run_operations(const Block& block, const BlockPlace& place,
                                BlockInstance& instance, const std::vector<Operation>& operations,
                                const std::vector<OperationLives>& lives, const MicroBatch* batch) {
  Communicator* tensor = groups_.find(GroupKind::kTensor, Stream::kCompute);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Operation& operation = operations[i];
    for (const BufferId id : lives[i].births) {
      const Buffer& buffer = block.buffers[id.index()];
      // An operation without work renames its input.
      const auto* kernel = std::get_if<Elementwise>(&operation.work);
      if (kernel != nullptr && kernel->elements == 0) continue;
      instance.buffers[id.index()] = memory_.make(buffer.category, buffer.size());
    }
    const OperationCall call{scenario_,          shape_,  block,  operation, place,
                             instance,           state_,  tensor, point_.tp, batch,
                             counted_elsewhere_, totals_, step_};
    if (observer_ != nullptr) observer_->begin(operation);
    run_operation(call);
    if (observer_ != nullptr) observer_->end(operation);
    for (const BufferId id : lives[i].deaths) instance.buffers[id.index()].reset();
  }
}

}  // namespace stepcast
