// SPDX-License-Identifier: Apache-2.0
#include "comm/reduce.h"

#include <cstddef>

namespace stepcast {

void reduce_into(float* into, std::span<const float> other, Reduction reduction) {
  const float* const from = other.data();
  const std::size_t count = other.size();
  if (reduction == Reduction::kSum) {
    for (std::size_t i = 0; i < count; ++i) into[i] += from[i];
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const bool take = from[i] > into[i] || from[i] != from[i];  // the latter: NaN
    into[i] = take ? from[i] : into[i];
  }
}

}  // namespace stepcast
