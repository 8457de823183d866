// SPDX-License-Identifier: Apache-2.0
// Limits of the work at hand: until when it may go on, and how much memory it may take. Whoever
// starts it opens a scope; every loop that may be long asks, however deep it stands in what was
// called. A limit that each function passes on would be one that some function forgets. Scopes hold
// for the thread that opens them, and for the threads of run_in_parallel() (core/parallel.h) below.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/quantity.h"

namespace stepcast {

// Thrown by end_if_stopped(); whoever opened the scope catches it.
struct Stopped {};

// While it lives, work ends once `stop` is true, or that of a scope around it. An empty one asks
// nothing.
class StopScope {
 public:
  explicit StopScope(const std::function<bool()>& stop);
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;
  ~StopScope();

  bool is_over() const { return (stop_ && stop_()) || (outer_ != nullptr && outer_->is_over()); }

 private:
  const std::function<bool()>& stop_;
  const StopScope* outer_;
};

// Throws Stopped where a scope of this thread is over.
void end_if_stopped();

// For short rounds of a loop: asks once in a thousand of them.
class StopPoint {
 public:
  void pass() {
    if (++rounds_ % kBetweenLooks == 0) end_if_stopped();
  }

 private:
  static constexpr std::uint32_t kBetweenLooks = 1024;
  std::uint32_t rounds_ = 0;
};

// A forecast that would take more memory than this is refused before it begins
// (predict/budget.h). Nothing that is planned in earnest comes near.
inline constexpr ByteCount kUsualMemoryLimit = ByteCount{8} << 30;

// A limit, and what forecasts on all threads hold of it.
struct MemoryPool;

// While it lives, each forecast may take so much memory, and those that run at a time together.
class MemoryScope {
 public:
  explicit MemoryScope(ByteCount most);
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;
  ~MemoryScope();

 private:
  std::unique_ptr<MemoryPool> pool_;
  MemoryPool* outer_;
};
ByteCount memory_limit();

// The memory that a forecast comes to hold. It begins once the scope has room for it beside the
// others, or once there are no others; what a forecast starts within itself waits for nobody. So
// results stay those of any number of threads.
class HeldMemory {
 public:
  // Throws Stopped where a scope of this thread ends while it waits.
  explicit HeldMemory(ByteCount bytes);
  HeldMemory(const HeldMemory&) = delete;
  HeldMemory& operator=(const HeldMemory&) = delete;
  ~HeldMemory();

 private:
  MemoryPool& pool_;
  ByteCount bytes_;
  bool is_within_;
};

// Carries the scopes of the thread that makes it into another one, while it is entered there.
class CarriedLimits {
 public:
  CarriedLimits();
  // In the other thread; until its end.
  void enter() const;

 private:
  const StopScope* stop_;
  MemoryPool* pool_;
  bool holds_;
};

}  // namespace stepcast
