// SPDX-License-Identifier: Apache-2.0
#include "worker/operation_times.h"

#include "operation/signature.h"

namespace stepcast {

void OperationTimes::begin(const Operation& operation) {
  Entry& entry = entries_[{operation.name, operation.phase}];
  if (entry.signature.empty()) entry.signature = signature(operation);
  marked_.push_back(&entry);
  marks_.push_back(device_.mark());
}

void OperationTimes::end(const Operation&) { marks_.push_back(device_.mark()); }

void OperationTimes::end_step() {
  device_.wait(marks_);
  for (std::size_t i = 0; i < marked_.size(); ++i) {
    const auto took = marks_[2 * i + 1]->start - marks_[2 * i]->end;
    marked_[i]->seconds.push_back(std::chrono::duration<double>(took).count());
  }
  marks_.clear();
  marked_.clear();
}

}  // namespace stepcast
