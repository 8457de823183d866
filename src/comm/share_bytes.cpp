// SPDX-License-Identifier: Apache-2.0
#include "comm/share_bytes.h"

#include <cstring>

namespace stepcast {

ShareBytes share_by(Communicator& group) {
  return [&group](const std::vector<std::byte>& own) {
    // The bytes travel as floats, with which nobody computes: a broadcast only moves their bits.
    std::vector<float> bits((own.size() + sizeof(float) - 1) / sizeof(float));
    std::memcpy(bits.data(), own.data(), own.size());
    group.broadcast(bits, 0);
    std::vector<std::byte> out(own.size());
    std::memcpy(out.data(), bits.data(), out.size());
    return out;
  };
}

}  // namespace stepcast
