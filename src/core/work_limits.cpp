// SPDX-License-Identifier: Apache-2.0
#include "core/work_limits.h"

namespace stepcast {
namespace {

thread_local const StopScope* innermost = nullptr;
thread_local ByteCount most_memory = kUsualMemoryLimit;

}  // namespace

StopScope::StopScope(const std::function<bool()>& stop) : stop_(stop), outer_(innermost) {
  innermost = this;
}
StopScope::~StopScope() { innermost = outer_; }

void end_if_stopped() {
  if (innermost != nullptr && innermost->is_over()) throw Stopped();
}

MemoryScope::MemoryScope(ByteCount most) : outer_(most_memory) { most_memory = most; }
MemoryScope::~MemoryScope() { most_memory = outer_; }

ByteCount memory_limit() { return most_memory; }

CarriedLimits::CarriedLimits() : stop_(innermost), memory_(most_memory) {}
void CarriedLimits::enter() const {
  innermost = stop_;
  most_memory = memory_;
}

}  // namespace stepcast
