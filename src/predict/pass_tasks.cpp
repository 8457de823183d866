// SPDX-License-Identifier: Apache-2.0
#include "predict/pass_tasks.h"

#include <algorithm>
#include <array>
#include <utility>

namespace stepcast {
namespace {

constexpr std::int32_t kNoTask = -1;

class PassWriter {
 public:
  PassWriter(std::span<const AxisGroup> groups, bool each_operation)
      : groups_(groups), each_operation_(each_operation) {}

  void add_block(std::span<const PricedOperation> block);
  std::vector<PassTask> finish();

 private:
  bool is_call(const Operation& operation) const;
  std::int32_t place(std::size_t i) const { return block_ + static_cast<std::int32_t>(i); }
  std::int32_t add(PassTask task);
  void add_call(const PricedOperation& priced, std::int32_t place, std::vector<std::int32_t> after);
  void begin_block(std::span<const PricedOperation> block);
  void compute(const PricedOperation& priced, std::size_t i);
  void beside(const PricedOperation& priced, std::size_t i);
  void end_block(std::size_t operations);
  // Makes a task of what was computed since the last one, if anything was.
  void close(std::int32_t end) {
    if (open_ < end || !waits_.empty()) make(end);
  }
  void make(std::int32_t end);
  void wait_for(const Operation& operation, std::vector<std::int32_t>& out) const;

  std::span<const AxisGroup> groups_;
  bool each_operation_;
  std::vector<PassTask> out_;
  std::int32_t block_ = 0;           // the first operation of the block
  std::int32_t open_ = 0;            // the first operation that is computed and in no task yet
  RunCost sum_;                      // of the open ones
  std::vector<std::int32_t> waits_;  // of the next task on the computing stream
  std::int32_t computed_ = kNoTask;  // the last on the computing stream
  std::vector<std::int32_t> made_;   // by operation of the block: its task
  std::vector<bool> is_awaited_;     // beside the computing stream
  bool runs_beside_ = false;
  std::int32_t begin_ = kNoTask;  // what the block's streams begin behind
  std::array<std::int32_t, kBlockStreams> last_{};
};

bool PassWriter::is_call(const Operation& operation) const {
  const auto* collective = std::get_if<Collective>(&operation.work);
  return collective != nullptr && !collective->overlapped &&
         std::ranges::find(groups_, collective->group) != groups_.end();
}

std::int32_t PassWriter::add(PassTask task) {
  const auto index = static_cast<std::int32_t>(out_.size());
  if (task.stream == Stream::kCompute) computed_ = index;
  out_.push_back(std::move(task));
  return index;
}

void PassWriter::make(std::int32_t end) {
  const std::int32_t from = std::max(open_ - block_, 0);
  const std::int32_t task =
      add({Stream::kCompute, sum_, nullptr, sum_.host, std::exchange(waits_, {}), open_, end});
  for (std::int32_t i = from; i < end - block_; ++i) made_[static_cast<std::size_t>(i)] = task;
  open_ = end;
  sum_ = {};
}

void PassWriter::wait_for(const Operation& operation, std::vector<std::int32_t>& out) const {
  for (const std::int32_t before : operation.after) {
    if (before < 0) continue;
    const std::int32_t task = made_[static_cast<std::size_t>(before)];
    if (std::ranges::find(out, task) == out.end()) out.push_back(task);
  }
}

// The call, and before it the wait for the last member, who comes late by the lag.
void PassWriter::add_call(const PricedOperation& priced, std::int32_t place,
                          std::vector<std::int32_t> after) {
  const Operation& operation = *priced.operation;
  const Stream stream = stream_of(operation.stream);
  if (priced.lag.value() > 0 && stream != Stream::kCompute) {
    RunCost late;
    late.wait(std::get<Collective>(operation.work).group, priced.lag);
    after = {add({stream, late, nullptr, {}, std::move(after), place, place})};
  }
  add({stream, {}, &operation, priced.cost.host, std::move(after), place, place + 1});
}

void PassWriter::compute(const PricedOperation& priced, std::size_t i) {
  const Operation& operation = *priced.operation;
  const bool waits =
      std::ranges::any_of(operation.after, [](std::int32_t before) { return before >= 0; });
  if (waits) close(place(i));
  wait_for(operation, waits_);
  if (!is_call(operation)) {
    sum_.append(priced.cost);
    if (each_operation_ || is_awaited_[i]) make(place(i) + 1);
    return;
  }
  if (each_operation_) close(place(i));
  RunCost late;
  late.wait(std::get<Collective>(operation.work).group, priced.lag);
  sum_.append(late);
  if (open_ < place(i) || priced.lag.value() > 0 || computed_ == kNoTask) make(place(i));
  add_call(priced, place(i), std::exchange(waits_, {}));
  made_[i] = computed_;
  open_ = place(i) + 1;
}

// On a stream beside the computing one.
void PassWriter::beside(const PricedOperation& priced, std::size_t i) {
  const Operation& operation = *priced.operation;
  if (open_ < place(i)) make(place(i));
  std::int32_t& last = last_[static_cast<std::size_t>(operation.stream)];
  std::vector<std::int32_t> after;
  if (last == kNoTask) after.push_back(begin_);
  wait_for(operation, after);
  if (is_call(operation)) {
    add_call(priced, place(i), std::move(after));
  } else {
    add({stream_of(operation.stream), priced.cost, nullptr, priced.cost.host, std::move(after),
         place(i), place(i) + 1});
  }
  made_[i] = last = static_cast<std::int32_t>(out_.size()) - 1;
  open_ = place(i) + 1;
}

// The streams beside the computing one begin behind what was computed before the block.
void PassWriter::begin_block(std::span<const PricedOperation> block) {
  if (!waits_.empty()) close(block_);  // an empty task, in which the block before has ended
  made_.assign(block.size(), kNoTask);
  is_awaited_.assign(block.size(), false);
  last_.fill(kNoTask);
  runs_beside_ = std::ranges::any_of(block, runs_beside);
  if (!runs_beside_) return;
  for (const PricedOperation& priced : block) {
    const std::int32_t computed =
        priced.operation->after[static_cast<std::size_t>(BlockStream::kCompute)];
    if (computed >= 0) is_awaited_[static_cast<std::size_t>(computed)] = true;
  }
  if (open_ < block_ || computed_ == kNoTask) make(block_);
  begin_ = computed_;
}

void PassWriter::end_block(std::size_t operations) {
  const std::int32_t end = place(operations);
  if (runs_beside_) close(end);
  for (const std::int32_t last : last_) {
    if (last != kNoTask) waits_.push_back(last);
  }
  block_ = end;
}

void PassWriter::add_block(std::span<const PricedOperation> block) {
  begin_block(block);
  for (std::size_t i = 0; i < block.size(); ++i) {
    runs_beside(block[i]) ? beside(block[i], i) : compute(block[i], i);
  }
  end_block(block.size());
}

std::vector<PassTask> PassWriter::finish() {
  close(block_);
  if (computed_ == kNoTask) make(block_);
  return std::move(out_);
}

}  // namespace

std::vector<PassTask> tasks_of(std::span<const std::vector<PricedOperation>* const> blocks,
                               std::span<const AxisGroup> groups, bool each_operation) {
  PassWriter writer(groups, each_operation);
  for (const std::vector<PricedOperation>* block : blocks) writer.add_block(*block);
  return writer.finish();
}

std::vector<PassTask> tasks_of(std::span<const PricedOperation> block) {
  PassWriter writer({}, true);
  writer.add_block(block);
  return writer.finish();
}

}  // namespace stepcast
