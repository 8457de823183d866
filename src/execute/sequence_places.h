// SPDX-License-Identifier: Apache-2.0
// Which tokens of a sequence a rank of context parallelism has: of twice as many pieces as ranks
// one from each end, so that all have as much causal work (docs/context-parallel.md).
#pragma once

#include "kernels/shapes.h"
#include "program/block_builder.h"

namespace stepcast {

inline SequencePlaces places_in_sequence(const Shape& shape, std::int64_t cp_rank) {
  if (shape.cp == 1) return {};
  const std::int64_t half = shape.sequence / 2;
  return {half, cp_rank * half, (2 * shape.cp - 1 - cp_rank) * half};
}

}  // namespace stepcast
