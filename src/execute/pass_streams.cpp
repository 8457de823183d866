// SPDX-License-Identifier: Apache-2.0
#include "execute/pass_streams.h"

#include <utility>

#include "program/block_events.h"

namespace stepcast {

PassStreams::PassStreams(Device& device, const std::vector<Operation>& pass)
    : device_(device), pass_(pass) {
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
    if (beside >= 0) device_.hold(events_[static_cast<std::size_t>(beside)]);
  }
}

void PassStreams::behind(std::size_t i) {
  if (!events_.empty() && is_awaited_[i]) events_[i] = device_.mark();
}

void PassStreams::post(std::size_t i, Transfer transfer) {
  EventHandle& latest = latest_[static_cast<std::size_t>(pass_[i].stream)];
  if (latest == nullptr) transfer.waits.push_back(begin_);
  for (const std::int32_t before : pass_[i].after) {
    if (before >= 0) transfer.waits.push_back(events_[static_cast<std::size_t>(before)]);
  }
  latest = events_[i] = device_.post(stream_of(pass_[i].stream), std::move(transfer));
}

void PassStreams::join() {
  for (const EventHandle& event : latest_) {
    if (event != nullptr) device_.hold(event);
  }
}

}  // namespace stepcast
