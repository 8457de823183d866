// SPDX-License-Identifier: Apache-2.0
#include "predict/pass_tasks.h"

#include <algorithm>
#include <array>
#include <utility>

namespace stepcast {
namespace {

constexpr std::int32_t kNoTask = -1;

// Lists a pass with a task for each operation.
class PassLister {
 public:
  explicit PassLister(std::span<const AxisGroup> groups) : groups_(groups) {}

  void add_block(std::span<const PricedOperation> block);
  std::vector<PassTask> take() {
    if (computed_ == kNoTask) join({});
    return std::move(out_);
  }

 private:
  bool is_call(const Operation& operation) const {
    const auto* collective = std::get_if<Collective>(&operation.work);
    return collective != nullptr && !collective->overlapped &&
           std::ranges::find(groups_, collective->group) != groups_.end();
  }
  std::int32_t add(PassTask task) {
    const auto index = static_cast<std::int32_t>(out_.size());
    if (task.stream == Stream::kCompute) computed_ = index;
    out_.push_back(std::move(task));
    return index;
  }
  // An empty task on the computing stream.
  void join(std::vector<std::int32_t> after) {
    add({Stream::kCompute, {}, nullptr, {}, std::move(after), place_, place_});
  }
  std::int32_t add_operation(const PricedOperation& priced, std::vector<std::int32_t> after);

  std::span<const AxisGroup> groups_;
  std::vector<PassTask> out_;
  std::int32_t place_ = 0;           // of the next operation
  std::int32_t computed_ = kNoTask;  // the last on the computing stream
};

// A call, and before it the wait for the last member, who comes late by the lag.
std::int32_t PassLister::add_operation(const PricedOperation& priced,
                                       std::vector<std::int32_t> after) {
  const Operation& operation = *priced.operation;
  const Stream stream = stream_of(operation.stream);
  const std::int32_t place = place_++;
  if (!is_call(operation)) {
    return add({stream, priced.cost, nullptr, priced.cost.host, std::move(after), place, place_});
  }
  if (priced.lag.value() > 0) {
    RunCost late;
    late.wait(std::get<Collective>(operation.work).group, priced.lag);
    after = {add({stream, late, nullptr, {}, std::move(after), place, place})};
    if (!runs_beside(priced)) after.clear();  // in the order of the stream
  }
  return add({stream, {}, &operation, priced.cost.host, std::move(after), place, place_});
}

// The streams beside the computing one begin behind what was computed before the block.
void PassLister::add_block(std::span<const PricedOperation> block) {
  if (out_.empty()) out_.reserve(block.size() + 2);
  const bool has_beside = std::ranges::any_of(block, runs_beside);
  const bool calls_first = !block.empty() && is_call(*block.front().operation);
  if (computed_ == kNoTask && (has_beside || calls_first)) join({});
  const std::int32_t begin = computed_;
  std::vector<std::int32_t> made;  // by operation
  std::array<std::int32_t, kBlockStreams> last;
  last.fill(kNoTask);
  for (const PricedOperation& priced : block) {
    std::int32_t& before_it = last[static_cast<std::size_t>(priced.operation->stream)];
    std::vector<std::int32_t> after;
    if (runs_beside(priced) && before_it == kNoTask) after.push_back(begin);
    for (const std::int32_t before : priced.operation->after) {
      if (before >= 0) after.push_back(made[static_cast<std::size_t>(before)]);
    }
    before_it = add_operation(priced, std::move(after));
    made.push_back(before_it);
  }
  if (!has_beside) return;
  std::vector<std::int32_t> beside(last.begin() + 1, last.end());
  std::erase(beside, kNoTask);
  join(std::move(beside));
}

// Joins tasks that are computed in a row, and neither wait nor are awaited in between, into one.
std::vector<PassTask> in_runs(std::vector<PassTask> each) {
  std::vector<bool> is_awaited(each.size(), false);
  for (const PassTask& task : each) {
    for (const std::int32_t before : task.after)
      is_awaited[static_cast<std::size_t>(before)] = true;
  }
  std::vector<PassTask> out;
  std::vector<std::int32_t> place;  // by task of `each`
  bool is_open = false;             // the last run goes on
  for (std::size_t k = 0; k < each.size(); ++k) {
    PassTask& task = each[k];
    const bool computes = task.stream == Stream::kCompute && task.call == nullptr;
    if (is_open && computes && task.after.empty()) {
      out.back().cost.append(task.cost);
      out.back().host += task.host;
      out.back().end = task.end;
    } else {
      for (std::int32_t& before : task.after) before = place[static_cast<std::size_t>(before)];
      out.push_back(std::move(task));
    }
    place.push_back(static_cast<std::int32_t>(out.size()) - 1);
    is_open = computes && !is_awaited[k];
  }
  return out;
}

}  // namespace

std::vector<PassTask> tasks_of(std::span<const std::span<const PricedOperation>> blocks,
                               std::span<const AxisGroup> groups, bool each_operation) {
  PassLister lister(groups);
  for (const std::span<const PricedOperation> block : blocks) lister.add_block(block);
  return each_operation ? lister.take() : in_runs(lister.take());
}

}  // namespace stepcast
