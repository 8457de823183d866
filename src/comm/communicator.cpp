// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.h"

#include "core/assert.h"

namespace stepcast {

Slice slice_of(std::int64_t count, int ranks, int rank) {
  STEPCAST_ASSERT(count >= 0 && rank >= 0 && rank < ranks, "a slice of a rank of the group");
  // rank*count/ranks without the product, which overflows for large counts.
  const std::int64_t each = count / ranks;
  const std::int64_t rest = count % ranks;
  const auto begin = [&](std::int64_t r) { return r * each + r * rest / ranks; };
  return {begin(rank), begin(rank + 1)};
}

}  // namespace stepcast
