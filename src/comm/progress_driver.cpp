// SPDX-License-Identifier: Apache-2.0
#include "comm/progress_driver.h"

#include <utility>

#include "comm/collective_operation.h"
#include "comm/transport.h"

namespace stepcast {

ProgressDriver::ProgressDriver(std::shared_ptr<Transport> transport)
    : transport_(std::move(transport)), time_limit_(std::chrono::seconds(60)) {}

void ProgressDriver::add(std::shared_ptr<CollectiveOperation> operation) {
  const std::lock_guard lock(mutex_);
  operations_.push_back(std::move(operation));
}

void ProgressDriver::drive_others(const CollectiveOperation& own) {
  // Works on a copy, because an operation may spend long on a sum while others begin.
  std::vector<std::shared_ptr<CollectiveOperation>> others;
  {
    const std::lock_guard lock(mutex_);
    if (operations_.size() == 1 && operations_.front().get() == &own) return;
    others = operations_;
  }
  bool any_ended = false;
  for (const std::shared_ptr<CollectiveOperation>& other : others) {
    if (other.get() == &own) continue;
    other->drive();
    any_ended = any_ended || other->ended();
  }
  if (any_ended) remove_ended();
}

void ProgressDriver::remove_ended() {
  // Destroyed after the lock is released.
  std::vector<std::shared_ptr<CollectiveOperation>> ended;
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<CollectiveOperation>> left;
  for (std::shared_ptr<CollectiveOperation>& operation : operations_) {
    (operation->ended() ? ended : left).push_back(std::move(operation));
  }
  operations_ = std::move(left);
}

}  // namespace stepcast
