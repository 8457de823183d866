// SPDX-License-Identifier: Apache-2.0
// A message between two ranks as an operation.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "comm/bulk_transfer.h"
#include "comm/collective_operation.h"

namespace stepcast {

class SendMessage final : public CollectiveOperation {
 public:
  SendMessage(std::shared_ptr<RankGroup> group, std::span<const float> data, int to,
              std::int64_t tag);

 private:
  bool advance() override;
  void withdraw() override { transfer_.withdraw(); }
  int awaited() const override { return to_; }

  const std::span<const float> data_;
  const int to_;
  const std::int64_t tag_;
  bool posted_ = false;
  BulkTransfer transfer_;
};

class ReceiveMessage final : public CollectiveOperation {
 public:
  ReceiveMessage(std::shared_ptr<RankGroup> group, std::span<float> data, int from,
                 std::int64_t tag);

 private:
  bool advance() override;
  void withdraw() override { transfer_.withdraw(); }
  int awaited() const override { return from_; }

  const std::span<float> data_;
  const int from_;
  const std::int64_t tag_;
  bool posted_ = false;
  BulkTransfer transfer_;
};

}  // namespace stepcast
