// SPDX-License-Identifier: Apache-2.0
// A message of any size in either direction, as transfers that one channel keeps in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/rank_group.h"
#include "comm/transport.h"

namespace stepcast {

class BulkTransfer {
 public:
  void send(RankGroup& group, std::span<const float> data, int to, RankGroup::Purpose purpose,
            std::int64_t tag);
  void receive(RankGroup& group, std::span<float> data, int from, RankGroup::Purpose purpose,
               std::int64_t tag);
  // Returns how many pieces have ended since the last call.
  int poll();
  bool ended() const { return ended_ == pieces_.size(); }
  void withdraw() { pieces_.clear(), ended_ = 0; }

 private:
  std::vector<std::unique_ptr<MessageTransfer>> pieces_;
  std::size_t ended_ = 0;
};

}  // namespace stepcast
