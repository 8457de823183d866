// SPDX-License-Identifier: Apache-2.0
#include "comm/share_bytes.h"

#include <algorithm>
#include <span>

namespace stepcast {

ShareBytes share_by(Communicator& group) {
  return [&group](const std::vector<std::byte>& own) {
    // The bytes travel as floats, with which nobody computes: a broadcast only moves their bits.
    std::vector<float> bits((own.size() + sizeof(float) - 1) / sizeof(float));
    std::ranges::copy(own, std::as_writable_bytes(std::span(bits)).begin());
    group.broadcast(bits, 0);
    const auto received = std::as_bytes(std::span(bits)).first(own.size());
    return std::vector<std::byte>(received.begin(), received.end());
  };
}

}  // namespace stepcast
