// SPDX-License-Identifier: Apache-2.0
// All-to-all in n-1 rounds: in round k a rank sends to r+k and receives from r-k, so each rank
// sends to one rank and receives from one rank at a time. NCCL pairs its grouped sends and receives
// in the same way.
#pragma once

#include <memory>
#include <span>

#include "comm/bulk_transfer.h"
#include "comm/collective_operation.h"

namespace stepcast {

class PairwiseAllToAll final : public CollectiveOperation {
 public:
  PairwiseAllToAll(std::shared_ptr<RankGroup> group, std::span<const float> send,
                   std::span<float> receive);

 private:
  bool advance() override;
  void withdraw() override;
  int awaited() const override;
  void start_round();
  int to() const;
  int from() const;

  const std::span<const float> send_;
  const std::span<float> receive_;
  int round_ = 0;  // 0: not begun
  BulkTransfer sending_, receiving_;
};

}  // namespace stepcast
