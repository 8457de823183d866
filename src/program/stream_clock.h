// SPDX-License-Identifier: Apache-2.0
// By stream: the latest of its instructions, or operations, that is known to have ended; -1: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace stepcast {

template <std::size_t streams>
using StreamClock = std::array<std::int32_t, streams>;

// Adds what another clock knows.
template <std::size_t streams>
void follow(StreamClock<streams>& clock, const StreamClock<streams>& other) {
  for (std::size_t s = 0; s < streams; ++s) clock[s] = std::max(clock[s], other[s]);
}

}  // namespace stepcast
