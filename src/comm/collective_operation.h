// SPDX-License-Identifier: Apache-2.0
// A collective or message under way, as a state machine that whoever waits for anything drives.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>

namespace stepcast {

class RankGroup;

class CollectiveOperation {
 public:
  // `name` is a literal: it appears in errors.
  CollectiveOperation(std::shared_ptr<RankGroup> group, const char* name, std::int64_t bytes);
  virtual ~CollectiveOperation();
  CollectiveOperation(const CollectiveOperation&) = delete;
  CollectiveOperation& operator=(const CollectiveOperation&) = delete;

  // Sets its lane among the group's collectives, and the operation that must have ended before it
  // may use that lane. To be called before the first drive().
  void take_lane(std::int64_t lane, std::shared_ptr<CollectiveOperation> before);

  // Does what can be done now, or nothing if another thread is driving it. Never throws: see
  // check().
  void drive() noexcept;
  bool ended() const { return state_.load(std::memory_order_acquire) != State::kRunning; }
  void check() const;  // throws what it failed with, if it has
  // Grows with each message that has begun or ended.
  std::int64_t moves() const { return moves_.load(std::memory_order_relaxed); }

  // Ends it as failed, withdraws its messages, and makes its group unusable.
  void time_out(std::chrono::milliseconds limit);
  void abandon();

  RankGroup& group() const { return *group_; }

 protected:
  virtual bool advance() = 0;  // true when it has ended
  virtual void withdraw() = 0;
  virtual int awaited() const = 0;  // the rank whose part is missing
  std::int64_t lane() const { return lane_; }
  void moved() { moves_.fetch_add(1, std::memory_order_relaxed); }

 private:
  enum class State { kRunning, kDone, kFailed };
  bool may_begin();
  void end_as_failed(std::exception_ptr why) noexcept;
  std::string described() const;

  const std::shared_ptr<RankGroup> group_;
  const char* const name_;
  const std::int64_t bytes_;
  std::int64_t lane_ = 0;

  std::mutex mutex_;  // held by who drives it
  std::shared_ptr<CollectiveOperation> before_;
  std::exception_ptr failure_;  // written before state_
  std::atomic<std::int64_t> moves_ = 0;
  std::atomic<State> state_ = State::kRunning;
};

}  // namespace stepcast
