// SPDX-License-Identifier: Apache-2.0
// Rounding to 8 bits in the language alone, because not every chip has an instruction for it.
#pragma once

#include "kernels/cuda/device.cuh"

namespace stepcast::cuda {

// E4M3: to the nearest, ties to even; beyond 448 the largest number; no number stays none.
__device__ inline std::uint8_t to_e4m3(float x) {
  constexpr std::uint32_t kInfinity = 0x7f800000, kSmallestNormal = 0x3c800000;  // 2^-6
  constexpr std::uint8_t kLargest = 0x7e, kNone = 0x7f;
  const std::uint32_t bits = __float_as_uint(x);
  const auto sign = static_cast<std::uint8_t>(bits >> 24 & 0x80);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > kInfinity) return sign | kNone;
  if (magnitude < kSmallestNormal) {
    // Multiples of 2^-9, which are the units of a float at 2^14.
    const float shifted = __uint_as_float(magnitude) + 16384.0F;
    return sign | static_cast<std::uint8_t>(__float_as_uint(shifted) - __float_as_uint(16384.0F));
  }
  // 20 bits of fraction go, and the exponent's bias falls from 127 to 7.
  const std::uint32_t rounded = magnitude + 0x7ffff + (magnitude >> 20 & 1);
  const std::uint32_t code = (rounded - (std::uint32_t{120} << 23)) >> 20;
  return sign | (code < kLargest ? static_cast<std::uint8_t>(code) : kLargest);
}

}  // namespace stepcast::cuda
