// SPDX-License-Identifier: Apache-2.0
// The user's hold on an operation: drives it and everything else that the process has under way,
// and throws when it stands still too long.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "comm/communicator.h"

namespace stepcast {

class CollectiveOperation;

class OperationRequest final : public Request {
 public:
  explicit OperationRequest(std::shared_ptr<CollectiveOperation> operation);
  ~OperationRequest() override;
  OperationRequest(const OperationRequest&) = delete;
  OperationRequest& operator=(const OperationRequest&) = delete;

  bool test() override;
  void wait() override;
  std::int64_t moves() const override;

 private:
  void watch_the_clock();

  const std::shared_ptr<CollectiveOperation> operation_;
  std::int64_t moves_ = -1;  // at the last look
  std::chrono::steady_clock::time_point still_since_;
  std::chrono::steady_clock::time_point looked_;
};

}  // namespace stepcast
