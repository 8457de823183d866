// SPDX-License-Identifier: Apache-2.0
#include "worker/operation_times.h"

#include "operation/signature.h"

namespace stepcast {

void OperationTimes::begin(const Operation& operation) {
  static_cast<void>(operation);
  begin_ = Clock::now();
}

void OperationTimes::end(const Operation& operation) {
  const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  Entry& entry = entries_[{operation.name, operation.phase}];
  if (entry.signature.empty()) entry.signature = signature(operation);
  entry.seconds.push_back(seconds);
}

}  // namespace stepcast
