// SPDX-License-Identifier: Apache-2.0
#include "execute/role_runner.h"

#include <algorithm>
#include <cmath>

#include "core/assert.h"
#include "core/overloaded.h"
#include "execute/sequence_places.h"
#include "layout/pipeline.h"
#include "layout/scenario.h"
#include "program/walk.h"

namespace stepcast {
namespace {

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// Two kernels at once would share what a device has for one: its cores, a library's workspace.
void expect_collectives_beside(const Operation& operation) {
  STEPCAST_ASSERT(operation.stream == BlockStream::kCompute ||
                      std::holds_alternative<Collective>(operation.work),
                  "only collectives run beside what a block computes");
}

// Into a tensor of its own. Rows of experts that a rank without others would get are its own.
bool brings_from_others(const Collective& collective) {
  return collective.kind == CollectiveKind::kAllGather ||
         collective.kind == CollectiveKind::kSendReceive ||
         (collective.kind == CollectiveKind::kAllToAll &&
          collective.purpose == CollectivePurpose::kActivations);
}

constexpr auto kWorkspace = static_cast<std::size_t>(MemoryCategory::kWorkspace);

}  // namespace

RoleRunner::RoleRunner(const Scenario& scenario, const Program& program, const RankGrid& grid,
                       RankId rank, DeviceCommunicator* world, std::unique_ptr<Device> device,
                       const ExecutorOptions& options)
    : scenario_(scenario),
      program_(program),
      grid_(grid),
      rank_(rank),
      point_(grid.point(rank)),
      part_(part_of(scenario.layout, grid, rank)),
      role_(program.roles[static_cast<std::size_t>(point_.pp)]),
      shape_(scenario),
      parameters_(placed_parameters(scenario, program, role_)),
      options_(options),
      device_(std::move(device)),
      memory_(*device_, world == nullptr && grid.size() > 1),
      groups_(program, grid, world, rank),
      state_(scenario, role_, grid, rank, memory_),
      text_(options.seed, scenario.model.vocab, std::min(options.fan_out, scenario.model.vocab)),
      totals_(
          memory_.make_uncounted(static_cast<std::int64_t>(sizeof(StepTotals)), DataType::kInt8)) {
  for_each_operation(program, expect_collectives_beside);
  for (const Block& block : program.blocks) lives_.push_back(trace_lives(block));
  if (role_.persistent[kWorkspace] > 0) {
    placeholder_ =
        memory_.make(MemoryCategory::kWorkspace, role_.persistent[kWorkspace], DataType::kInt8);
  }
  counted_elsewhere_ = counted_elsewhere();
  if (scenario.model.moe && !options.by_scores) {
    choice_.emplace(options.spread ? *options.spread : spread_of(scenario), options.seed);
  }
  if (shape_.fp8 && !shape_.fp8.recipe->finds_scale) {
    const double tokens = static_cast<double>(scenario.training.global_batch) *
                          static_cast<double>(scenario.training.sequence_length);
    fp8_history_.emplace(program, role_, static_cast<float>(1 / tokens), memory_);
  }
  state_.initialise(scenario, program, role_, options.seed, part_, options.alive);
}

RoleRunner::~RoleRunner() { device_->stop(); }  // transfers that an error has left know this object

StepRecord RoleRunner::step() {
  ++step_;
  device_->zero(totals(), sizeof(StepTotals));
  events_.assign(role_.instructions.size(), nullptr);
  prepare_micro_batches();
  const Clock::time_point begin = device_->begin_step();
  for (std::size_t i = 0; i < role_.instructions.size(); ++i) issue(static_cast<std::int32_t>(i));
  device_->wait(events_);
  returned_.clear();
  if (fp8_history_) fp8_history_->end_step(groups_);
  StepRecord out;
  out.begin = begin;
  Clock::time_point end = begin;
  for (const EventHandle& event : events_) {
    end = std::max(end, event->end);
    out.spans.push_back({seconds_between(begin, event->start), seconds_between(begin, event->end)});
  }
  out.seconds = seconds_between(begin, end);
  const StepTotals totals = totals_on_host();
  out.loss_sum = totals.loss_sum + prediction_weight(scenario_.model) * totals.predicted_loss_sum;
  out.gradient_norm = std::sqrt(static_cast<double>(totals.squared_norm));
  return out;
}

StepTotals RoleRunner::totals_on_host() {
  StepTotals out;
  device_->download(&out, totals(), sizeof(out));
  return out;
}

std::vector<EventHandle> RoleRunner::awaited(const Instruction& what) const {
  std::vector<EventHandle> out;
  for (const InstructionIndex wait : what.waits) {
    out.push_back(events_[static_cast<std::size_t>(wait)]);
  }
  return out;
}

// Issues one instruction as a host does: kernels, and all else on their stream, are queued for
// computing, and transfers on their own streams.
void RoleRunner::issue(std::int32_t index) {
  const Instruction& what = role_.instructions[static_cast<std::size_t>(index)];
  EventHandle& event = events_[static_cast<std::size_t>(index)];
  const auto compute = [&](const std::function<void()>& work) {
    event = device_->run(awaited(what), work);
  };
  const auto post = [&](Transfer transfer) {
    transfer.waits = awaited(what);
    event = device_->post(what.stream, std::move(transfer));
  };
  std::visit(Overloaded{[&](const RunPass& pass) {
                          compute([&] {
                            open_windows(what);
                            run_pass(pass);
                          });
                        },
                        [&](const RunBlock& run) {
                          compute([&] {
                            open_windows(what);
                            const bool casts = run.kind == BlockKind::kCastGradients;
                            run_unplaced(program_.block(run.block),
                                         casts ? wide_gradients_for(index) : nullptr);
                          });
                        },
                        [&](const CollectiveCall& call) {
                          if (what.stream == Stream::kCompute) {
                            compute([&] { run_here(collective(what)); });
                          } else {
                            post(collective(what));
                          }
                          const bool completes =
                              scatters_gradients(call) ||
                              (call.purpose == Purpose::kGradients && call.group.is_outer());
                          if (completes) reductions_[call.elements.begin] = event;
                        },
                        [&](const Send& message) { post(send(message, what.stream)); },
                        [&](const Receive& message) { post(receive(message, what.stream)); },
                        [&](const HostWait&) {
                          device_->wait(awaited(what));
                          compute([] {});
                        },
                        [&](const ActivationCopy& moved) { post(copy(moved)); },
                        [&](const StateCopy& moved) { post(copy(moved)); },
                        [&](const HostUpdate& updated) { post(update(updated)); }},
             what.work);
  close_windows(what);
}

// A transfer between what is computed before and behind it.
void RoleRunner::run_here(const Transfer& transfer) {
  for (const StartTraffic& start : transfer.starts) {
    if (transfer.group != nullptr) {
      device_->communicate(*transfer.group, start);
    } else {
      start(nullptr);
    }
  }
  if (transfer.finish) transfer.finish();
}

// The reduction that gradients are cast for follows at once.
WideGradients* RoleRunner::wide_gradients_for(std::int32_t index) {
  const Instruction& next = role_.instructions[static_cast<std::size_t>(index) + 1];
  const ElementRange unit = next.as<CollectiveCall>()->elements;
  return &(wide_[unit.begin] = {unit, nullptr});
}

// The elements that are reduced together with `range`.
ElementRange RoleRunner::unit_of(ElementRange range) const {
  for (const Instruction& instruction : role_.instructions) {
    const auto* call = instruction.as<CollectiveCall>();
    if (call != nullptr && scatters_gradients(*call) && call->elements.begin <= range.begin &&
        call->elements.end >= range.end) {
      return call->elements;
    }
  }
  return range;
}

void RoleRunner::open_windows(const Instruction& what) {
  for (const ElementRange& range : what.windows.get().holds_gradients) {
    state_.gradient_windows().open(range, unit_of(range));
  }
}

void RoleRunner::close_windows(const Instruction& what) {
  const FlatWindows& windows = what.windows.get();
  for (const ElementRange& range : windows.frees_parameters) {
    state_.parameter_windows().close(range);
  }
  for (const ElementRange& range : windows.frees_gradients) {
    // They live until their reduction has ended.
    for (const auto& [begin, event] : reductions_) {
      if (begin >= range.begin && begin < range.end) device_->hold(event);
    }
    state_.gradient_windows().close(range);
  }
}

bool RoleRunner::is_last_of_model(const Chunk& chunk) const {
  return chunk.model_chunk + 1 == model_chunks(scenario_.layout);
}

// Ends of the model read text; it is there before the step begins, as a data loader's would be. So
// are the experts of tokens that a seed chooses.
void RoleRunner::prepare_micro_batches() {
  micro_batches_.clear();
  const bool reads_text = std::ranges::any_of(role_.chunks, [&](const Chunk& chunk) {
    return is_first_of_model(chunk) || is_last_of_model(chunk);
  });
  for (std::int32_t m = 0; m < scenario_.micro_batches(); ++m) {
    MicroBatch& batch = micro_batches_[m];
    if (reads_text) batch = load(m);
    if (choice_) batch.experts = choose_experts(m);
  }
}

// Chooses for this rank's tokens: a part of each micro-batch if tensor ranks share sequences.
Tensor RoleRunner::choose_experts(std::int32_t micro_batch) {
  const auto top_k = static_cast<std::size_t>(scenario_.model.moe->top_k);
  std::vector<std::int64_t> out(static_cast<std::size_t>(shape_.rows) * top_k);
  const std::int64_t first = shape_.sequence_parallel ? point_.tp * shape_.rows : 0;
  const SequencePlaces places = places_in_sequence(shape_, point_.cp);
  for (std::int64_t i = 0; i < shape_.rows; ++i) {
    const std::int64_t token = first + i;
    choice_->choose(first_sequence(micro_batch) + token / shape_.sequence,
                    places.at(token % shape_.sequence), scenario_.training.sequence_length,
                    std::span(out).subspan(static_cast<std::size_t>(i) * top_k, top_k));
  }
  return put(out);
}

// Counted over the step.
std::int64_t RoleRunner::first_sequence(std::int32_t micro_batch) const {
  return (micro_batch * scenario_.layout.dp + point_.dp) * shape_.batch;
}

Tensor RoleRunner::put(const std::vector<std::int64_t>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  const Tensor to = memory_.make_uncounted(count, DataType::kInt64);
  device_->upload(to->array().data, values.data(), values.size() * sizeof(std::int64_t));
  return to;
}

MicroBatch RoleRunner::load(std::int32_t micro_batch) {
  const std::int64_t sequence = scenario_.training.sequence_length;
  const SequencePlaces places = places_in_sequence(shape_, point_.cp);
  const auto copies = static_cast<std::size_t>(2 + scenario_.model.mtp_layers);
  std::vector<std::int64_t> text(static_cast<std::size_t>(sequence) + copies - 1);
  std::vector<std::vector<std::int64_t>> later(copies);  // by how much
  for (std::int64_t b = 0; b < shape_.batch; ++b) {
    const std::int64_t index = first_sequence(micro_batch) + b;
    text_.sequence((step_ - 1) * scenario_.training.global_batch + index, text);
    for (std::size_t by = 0; by < copies; ++by) {
      for (std::int64_t token = 0; token < shape_.sequence; ++token) {
        later[by].push_back(text[static_cast<std::size_t>(places.at(token)) + by]);
      }
    }
  }
  MicroBatch out;
  for (const std::vector<std::int64_t>& tokens : later) out.text.push_back(put(tokens));
  return out;
}

void RoleRunner::run_unplaced(const Block& block, WideGradients* wide) {
  BlockInstance instance;
  const std::vector<Operation>& operations = operations_of(block, Pass::kForward);
  run_operations(block, {}, instance, operations, std::vector<OperationLives>(operations.size()),
                 nullptr, wide);
}

void RoleRunner::run_pass(const RunPass& pass) {
  for_each_block(role_, pass, [&](const BlockVisit& at) { run_block(pass.slot, *at.index); });
}

// Takes what the block before has left, in this chunk or in another of this stage, or what a
// neighbouring stage has sent.
Tensor RoleRunner::take(const Slot& slot, bool first_block) {
  PassKey key = key_of(slot);
  auto& source = first_block && arriving_.contains(key) ? arriving_ : leaving_;
  if (first_block && &source == &leaving_) {  // the pipeline turns on this stage
    const std::int64_t step = slot.pass == Pass::kForward ? -1 : 1;
    const std::int64_t from = role_.chunks[static_cast<std::size_t>(slot.chunk)].model_chunk + step;
    const auto chunk = std::ranges::find(role_.chunks, from, &Chunk::model_chunk);
    std::get<1>(key) = static_cast<std::int32_t>(chunk - role_.chunks.begin());
  }
  const auto found = source.find(key);
  STEPCAST_ASSERT(found != source.end(), "what a block reads has been made");
  Tensor out = std::move(found->second);
  source.erase(found);
  return out;
}

// Leaves its own activation (or gradient) in `leaving_`.
void RoleRunner::run_block(const Slot& slot, std::int32_t index) {
  const bool forward = slot.pass == Pass::kForward;
  const bool weights = slot.pass == Pass::kWeightGradient;  // it hands nothing on
  const auto chunk = static_cast<std::size_t>(slot.chunk), at = static_cast<std::size_t>(index);
  const Chunk& own = role_.chunks[chunk];
  const Block& block = program_.block(own.blocks[at]);
  const BlockLives& lives = lives_[own.blocks[at].index()];
  BlockInstance& instance = instances_[{slot.chunk, index, slot.micro_batch}];
  instance.buffers.resize(block.buffers.size());
  const bool first = forward ? index == 0 : at + 1 == own.blocks.size();
  const PassKey key = key_of(slot);
  const auto found = micro_batches_.find(slot.micro_batch);
  const MicroBatch* batch = found == micro_batches_.end() ? nullptr : &found->second;

  const BufferId in = weights ? BufferId{} : forward ? block.input : block.output_gradient;
  if (in.valid()) {
    Tensor& input = instance.buffers[in.index()];
    if (forward && first && is_first_of_model(own)) {
      const Buffer& tokens = block.buffers[in.index()];  // counted; kernels read the micro-batch
      input = memory_.make(tokens.category, tokens.elements, tokens.type);
    } else {
      input = take(slot, first);
    }
  }
  const BlockPlace place{&program_, &role_, chunk, at};
  run_operations(block, place, instance, operations_of(block, slot.pass), lives.pass(slot.pass),
                 batch, nullptr);
  const BufferId out = weights ? BufferId{} : forward ? block.output : block.input_gradient;
  if (out.valid()) leaving_[key] = std::move(instance.buffers[out.index()]);
  if (slot.pass == last_pass_of(block.form)) {
    instances_.erase({slot.chunk, index, slot.micro_batch});
  }
}

void RoleRunner::run_operations(const Block& block, const BlockPlace& place,
                                BlockInstance& instance, const std::vector<Operation>& operations,
                                const std::vector<OperationLives>& lives, const MicroBatch* batch,
                                WideGradients* wide) {
  PassStreams streams(*device_, operations, observer_);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Operation& operation = operations[i];
    give_birth(block, operation, lives[i].births, instance);
    const OperationCall call{scenario_, shape_,    block,  operation,
                             place,     instance,  state_, memory_,
                             groups_,   point_.tp, batch,  counted_elsewhere_,
                             totals(),  wide,      step_,  fp8_history_ ? &*fp8_history_ : nullptr};
    if (operation.stream != BlockStream::kCompute) {
      post_beside(call, i, streams);
    } else {
      streams.before(i);
      if (observer_ != nullptr) observer_->begin(operation);
      run_operation(call);
      if (observer_ != nullptr) observer_->end(operation);
      streams.behind(i);
    }
    if (i + 1 == operations.size()) streams.join();  // nothing that still runs loses its buffers
    for (const BufferId id : lives[i].deaths) instance.buffers[id.index()].reset();
  }
}

void RoleRunner::give_birth(const Block& block, const Operation& operation,
                            const std::vector<BufferId>& births, BlockInstance& instance) {
  if (std::holds_alternative<Alias>(operation.work)) return;  // it gets its input's tensor
  const auto* collective = std::get_if<Collective>(&operation.work);
  const bool gathers = collective != nullptr && brings_from_others(*collective);
  for (const BufferId id : births) {
    instance.buffers[id.index()] =
        memory_.make_in_block(block.buffers[id.index()], stream_of(operation.stream), gathers);
  }
}

void RoleRunner::post_beside(const OperationCall& call, std::size_t i, PassStreams& streams) {
  Transfer transfer = collective_beside(call, std::get<Collective>(call.operation.work));
  // Stand-ins change hands in the order of what is computed.
  if (memory_.is_alone()) transfer.waits.push_back(device_->mark());
  streams.post(i, std::move(transfer));
}

}  // namespace stepcast
