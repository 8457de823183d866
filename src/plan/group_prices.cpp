// SPDX-License-Identifier: Apache-2.0
#include "plan/group_prices.h"

namespace stepcast {

std::size_t GroupPrices::PlacedHash::operator()(const Placed& placed) const {
  const Message& message = placed.message;
  std::uint64_t out = static_cast<std::uint64_t>(message.bytes) * 0x9e3779b97f4a7c15;
  out ^= static_cast<std::uint64_t>(placed.place.value) << 32 |
         static_cast<std::uint64_t>(message.kind) << 8 | static_cast<std::uint64_t>(message.type);
  return out * 0xff51afd7ed558ccd >> 16;
}

PlaceId GroupPrices::place(const std::vector<DeviceId>& members) {
  const PlaceId fresh(members_.size());
  const std::optional<GroupShape> shape = costs_.shape(members);
  const PlaceId found = shape ? known_.try_emplace(*shape, fresh).first->second
                              : known_members_.try_emplace(members, fresh).first->second;
  if (found == fresh) members_.push_back(members);
  return found;
}

Seconds GroupPrices::time(PlaceId place, const Message& message) {
  const auto [found, fresh] = times_.try_emplace({place, message}, Seconds(0));
  if (fresh) {
    const std::vector<DeviceId>& members = members_[place.index()];
    found->second = costs_.price(message, members).time();
  }
  return found->second;
}

}  // namespace stepcast
