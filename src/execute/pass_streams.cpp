// SPDX-License-Identifier: Apache-2.0
#include "execute/pass_streams.h"

#include <utility>

#include "program/block_events.h"

namespace stepcast {

PassStreams::PassStreams(Device& device, const std::vector<Operation>& pass,
                         OperationObserver* observer)
    : device_(device), pass_(pass), observer_(observer) {
  if (!runs_beside(pass)) return;
  is_awaited_.assign(pass.size(), false);
  events_.resize(pass.size());
  for (const Operation& operation : pass) {
    const std::int32_t computed = operation.after[static_cast<std::size_t>(BlockStream::kCompute)];
    if (computed >= 0) is_awaited_[static_cast<std::size_t>(computed)] = true;
  }
  begin_ = device.mark();
}

void PassStreams::before(std::size_t i) {
  if (events_.empty()) return;
  for (const std::int32_t beside : pass_[i].after) {
    if (beside >= 0) hold(beside);
  }
}

void PassStreams::hold(std::int32_t beside) {
  const auto i = static_cast<std::size_t>(beside);
  if (observer_ != nullptr) observer_->begin_wait(pass_[i]);
  device_.hold(events_[i]);
  if (observer_ != nullptr) observer_->end_wait(pass_[i]);
}

void PassStreams::behind(std::size_t i) {
  if (!events_.empty() && is_awaited_[i]) events_[i] = device_.mark();
}

void PassStreams::post(std::size_t i, Transfer transfer) {
  std::int32_t& latest = latest_[static_cast<std::size_t>(pass_[i].stream)];
  if (latest < 0) transfer.waits.push_back(begin_);
  for (const std::int32_t before : pass_[i].after) {
    if (before >= 0) transfer.waits.push_back(events_[static_cast<std::size_t>(before)]);
  }
  events_[i] = device_.post(stream_of(pass_[i].stream), std::move(transfer));
  latest = static_cast<std::int32_t>(i);
  if (observer_ != nullptr) observer_->beside(pass_[i], events_[i]);
}

void PassStreams::join() {
  for (const std::int32_t beside : latest_) {
    if (beside >= 0) hold(beside);
  }
}

}  // namespace stepcast
