// SPDX-License-Identifier: Apache-2.0
#include "comm/transport.h"

#include <functional>

namespace stepcast {

std::size_t ChannelHash::operator()(const Channel& channel) const {
  // Fibonacci hashing of the three, one after the other.
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15U;
  std::uint64_t hash = static_cast<std::uint64_t>(channel.peer);
  for (const std::uint64_t part :
       {static_cast<std::uint64_t>(channel.context), static_cast<std::uint64_t>(channel.tag)}) {
    hash = (hash ^ (hash >> 32U)) * kGolden + part;
  }
  return std::hash<std::uint64_t>()(hash * kGolden);
}

}  // namespace stepcast
