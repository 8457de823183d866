// SPDX-License-Identifier: Apache-2.0
#include "worker/operation_times.h"

#include "operation/operation.h"
#include "operation/signature.h"

namespace stepcast {

OperationTimes::Entry& OperationTimes::entry_of(const Operation& operation) {
  Entry*& entry = known_[&operation];
  if (entry == nullptr) {
    const Key key{signature(operation), operation.name, operation.phase};
    entry = &entries_.try_emplace(key, Entry{&operation, {}}).first->second;
  }
  return *entry;
}

void OperationTimes::begin(const Operation& operation) {
  spans_.push_back({Kind::kComputed, &entry_of(operation), device_.mark(), nullptr});
}

void OperationTimes::end(const Operation&) { spans_.back().end = device_.mark(); }

void OperationTimes::beside(const Operation& operation, const EventHandle& event) {
  spans_.push_back({Kind::kBeside, &entry_of(operation), event, event});
}

void OperationTimes::begin_wait(const Operation& beside) {
  spans_.push_back({Kind::kWait, &entry_of(beside), device_.mark(), nullptr});
}

void OperationTimes::end_wait(const Operation&) { spans_.back().end = device_.mark(); }

void OperationTimes::end_step() {
  for (const auto& [kind, entry, begin, end] : spans_) {
    device_.wait({begin, end});
    const auto took = kind == Kind::kBeside ? end->end - begin->start : end->start - begin->end;
    const double seconds = std::chrono::duration<double>(took).count();
    if (kind != Kind::kWait) entry->seconds.push_back(seconds);
    if (kind != Kind::kBeside) entry->exposed_s += seconds;
  }
  spans_.clear();
}

}  // namespace stepcast
