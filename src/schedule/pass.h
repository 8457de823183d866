// SPDX-License-Identifier: Apache-2.0
// The passes of a schedule, and the order in which a stage runs them.
#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

// Backward runs as one pass, or apart: input gradients, which the stage before waits for, and
// weight gradients, which nobody waits for.
enum class Pass { kForward, kBackward, kInputGradient, kWeightGradient };
inline constexpr int kPasses = 4;
const char* name_of(Pass pass);  // "forward"

struct Slot {
  Pass pass;
  std::int32_t micro_batch;
  std::int32_t chunk;  // local index on its stage, 0 .. chunks-1
  bool operator==(const Slot&) const = default;
};

using StageOrder = std::vector<Slot>;

}  // namespace stepcast
