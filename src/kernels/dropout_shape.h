// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace stepcast {

// Dropout of a matrix. Element i of it is dropped where the bits of i and the seed are below the
// limit; the others are scaled, so that their mean stays.
struct DropoutShape {
  std::int64_t rows, columns;
  double rate;  // from 0 to below 1
  std::uint32_t seed;

  std::uint32_t limit() const { return static_cast<std::uint32_t>(rate * 0x1p32); }
  float scale() const { return static_cast<float>(1 / (1 - rate)); }
};

}  // namespace stepcast
