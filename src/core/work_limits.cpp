// SPDX-License-Identifier: Apache-2.0
#include "core/work_limits.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace stepcast {

struct MemoryPool {
  ByteCount most = kUsualMemoryLimit;
  ByteCount held = 0;
  std::mutex mutex;
  std::condition_variable changed;

  bool has_room(ByteCount bytes) const { return held == 0 || held + bytes <= most; }
};

namespace {

thread_local const StopScope* innermost = nullptr;
thread_local MemoryPool* innermost_pool = nullptr;
thread_local bool holds_memory = false;

MemoryPool& pool_at_hand() {
  static MemoryPool usual;
  return innermost_pool != nullptr ? *innermost_pool : usual;
}

}  // namespace

StopScope::StopScope(const std::function<bool()>& stop) : stop_(stop), outer_(innermost) {
  innermost = this;
}
StopScope::~StopScope() { innermost = outer_; }

void end_if_stopped() {
  if (innermost != nullptr && innermost->is_over()) throw Stopped();
}

MemoryScope::MemoryScope(ByteCount most)
    : pool_(std::make_unique<MemoryPool>()), outer_(innermost_pool) {
  pool_->most = most;
  innermost_pool = pool_.get();
}
MemoryScope::~MemoryScope() { innermost_pool = outer_; }

ByteCount memory_limit() { return pool_at_hand().most; }

HeldMemory::HeldMemory(ByteCount bytes)
    : pool_(pool_at_hand()), bytes_(bytes), is_within_(holds_memory) {
  constexpr std::chrono::milliseconds kBetweenLooks(20);  // at whether to stop
  std::unique_lock lock(pool_.mutex);
  while (!is_within_ && !pool_.has_room(bytes)) {
    pool_.changed.wait_for(lock, kBetweenLooks);
    end_if_stopped();
  }
  pool_.held += bytes;
  holds_memory = true;
}

HeldMemory::~HeldMemory() {
  holds_memory = is_within_;
  {
    const std::lock_guard lock(pool_.mutex);
    pool_.held -= bytes_;
  }
  pool_.changed.notify_all();
}

CarriedLimits::CarriedLimits() : stop_(innermost), pool_(innermost_pool), holds_(holds_memory) {}
void CarriedLimits::enter() const {
  innermost = stop_;
  innermost_pool = pool_;
  holds_memory = holds_;
}

}  // namespace stepcast
