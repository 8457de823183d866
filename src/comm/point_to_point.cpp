// SPDX-License-Identifier: Apache-2.0
#include "comm/point_to_point.h"

#include <utility>

namespace stepcast {

SendMessage::SendMessage(std::shared_ptr<RankGroup> group, std::span<const float> data, int to,
                         std::int64_t tag)
    : CollectiveOperation(std::move(group), "send", static_cast<std::int64_t>(data.size_bytes())),
      data_(data),
      to_(to),
      tag_(tag) {}

bool SendMessage::advance() {
  if (!std::exchange(posted_, true)) {
    transfer_.send(group(), data_, to_, RankGroup::Purpose::kMessage, tag_);
  }
  if (transfer_.poll() > 0) moved();
  return transfer_.ended();
}

ReceiveMessage::ReceiveMessage(std::shared_ptr<RankGroup> group, std::span<float> data, int from,
                               std::int64_t tag)
    : CollectiveOperation(std::move(group), "receive",
                          static_cast<std::int64_t>(data.size_bytes())),
      data_(data),
      from_(from),
      tag_(tag) {}

bool ReceiveMessage::advance() {
  if (!std::exchange(posted_, true)) {
    transfer_.receive(group(), data_, from_, RankGroup::Purpose::kMessage, tag_);
  }
  if (transfer_.poll() > 0) moved();
  return transfer_.ended();
}

}  // namespace stepcast
