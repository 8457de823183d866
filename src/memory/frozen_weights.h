// SPDX-License-Identifier: Apache-2.0
// Weights that are not trained: no gradient, no states, and in four bits where nothing but a matrix
// product reads them.
#pragma once

#include "core/data_type.h"
#include "core/quantity.h"

namespace stepcast {

// NF4 with double quantisation: 4 bits, an 8-bit scale for each 64 weights, an fp32 scale for each
// 256 of those, 4.127 bits in all (Dettmers et al. 2023, section 3).
inline constexpr double kFourBitBytes = (4 + 8.0 / 64 + 32.0 / (64 * 256)) / 8;

// Elements of a block or stage on one rank.
struct FrozenWeights {
  std::int64_t plain = 0;     // in the type of activations
  std::int64_t four_bit = 0;  // NF4
  std::int64_t in_fp8 = 0;    // by one copy; a device may keep another (layout/fp8_recipe.h)
  std::int64_t elements() const { return plain + four_bit + in_fp8; }
  ByteCount bytes(DataType plain_type) const;
};

}  // namespace stepcast
