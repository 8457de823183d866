// SPDX-License-Identifier: Apache-2.0
// How many micro-batches an order holds at once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "schedule/pass.h"

namespace stepcast {

// The largest number of micro-batch chunks of a stage whose forward is done and backward is not.
inline std::int64_t most_in_flight(const StageOrder& order) {
  std::int64_t held = 0;
  std::int64_t most = 0;
  for (const Slot& slot : order) {
    if (slot.pass == Pass::kForward) most = std::max(most, ++held);
    // A split backward keeps its activations until the weight gradient.
    if (slot.pass == Pass::kBackward || slot.pass == Pass::kWeightGradient) --held;
  }
  return most;
}

}  // namespace stepcast
