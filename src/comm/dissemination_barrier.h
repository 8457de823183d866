// SPDX-License-Identifier: Apache-2.0
// Barrier by dissemination (Hensgen, Finkel and Manber 1988): in round k a rank tells r+2^k that
// it, and all of whom it has heard, are there; ceil(log2 n) rounds.
#pragma once

#include <memory>

#include "comm/bulk_transfer.h"
#include "comm/collective_operation.h"

namespace stepcast {

class DisseminationBarrier final : public CollectiveOperation {
 public:
  explicit DisseminationBarrier(std::shared_ptr<RankGroup> group);

 private:
  bool advance() override;
  void withdraw() override;
  int awaited() const override;
  void start_round();

  int distance_ = 0;  // 0: not begun
  BulkTransfer sending_, receiving_;
};

}  // namespace stepcast
