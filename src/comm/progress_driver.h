// SPDX-License-Identifier: Apache-2.0
// Drives all operations that one process has under way. Whoever waits for one of them drives them
// all: ranks that wait for two operations in different orders would hang otherwise, also when the
// two are of different groups.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

namespace stepcast {

class CollectiveOperation;
class Transport;

class ProgressDriver {
 public:
  explicit ProgressDriver(std::shared_ptr<Transport> transport);

  Transport& transport() const { return *transport_; }
  void add(std::shared_ptr<CollectiveOperation> operation);
  // All except the one that the caller drives itself.
  void drive_others(const CollectiveOperation& own);
  void remove_ended();

  std::chrono::milliseconds time_limit() const { return time_limit_.load(); }
  void set_time_limit(std::chrono::milliseconds limit) { time_limit_.store(limit); }

 private:
  const std::shared_ptr<Transport> transport_;
  std::atomic<std::chrono::milliseconds> time_limit_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<CollectiveOperation>> operations_;  // oldest first
};

}  // namespace stepcast
