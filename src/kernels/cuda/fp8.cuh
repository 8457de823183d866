// SPDX-License-Identifier: Apache-2.0
// Rounding to 8 bits in the language alone, because not every chip has an instruction for it.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/fp8_format.h"

namespace stepcast::cuda {

// To the nearest, ties to even; beyond the largest number that one; no number stays none.
template <Fp8Format format>
__device__ inline std::uint8_t to_fp8(float x) {
  constexpr Fp8Layout layout = kFp8Layout<format>;
  constexpr std::uint32_t kInfinity = 0x7f800000;
  constexpr std::uint32_t kSmallestNormal = static_cast<std::uint32_t>(128 - layout.bias) << 23;
  // Numbers below are multiples of 2^(1 - bias - fraction bits), the units of a float this large.
  constexpr std::uint32_t kUnits =
      static_cast<std::uint32_t>(127 + 24 - layout.bias - layout.fraction_bits) << 23;
  constexpr int kDropped = 23 - layout.fraction_bits;
  constexpr std::uint32_t kHalf = (std::uint32_t{1} << (kDropped - 1)) - 1;
  constexpr std::uint32_t kBias = static_cast<std::uint32_t>(127 - layout.bias) << 23;
  constexpr std::uint8_t kNone = 0x7f;
  const std::uint32_t bits = __float_as_uint(x);
  const auto sign = static_cast<std::uint8_t>(bits >> 24 & 0x80);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > kInfinity) return sign | kNone;
  if (magnitude < kSmallestNormal) {
    const float shifted = __uint_as_float(magnitude) + __uint_as_float(kUnits);
    return sign | static_cast<std::uint8_t>(__float_as_uint(shifted) - kUnits);
  }
  const std::uint32_t rounded = magnitude + kHalf + (magnitude >> kDropped & 1);
  const std::uint32_t code = (rounded - kBias) >> kDropped;
  return sign |
         (code < layout.largest_code ? static_cast<std::uint8_t>(code) : layout.largest_code);
}

// The exponent of the scale that Fp8CastArguments speaks of. A float has one over it, too.
template <Fp8Format format>
__device__ inline int scale_exponent(float largest) {
  constexpr std::uint32_t kInfinity = 0x7f800000, kFraction = 0x7fffff, kOfLargest = 0x600000;
  constexpr int kMost = 120;
  const std::uint32_t bits = __float_as_uint(largest) & 0x7fffffff;
  if (bits == 0 || bits >= kInfinity) return 0;
  const int of_largest = static_cast<int>(bits >> 23) - 127;
  const int exponent =
      kFp8Layout<format>.top - of_largest - ((bits & kFraction) > kOfLargest ? 1 : 0);
  return exponent < kMost ? exponent : kMost;
}
__device__ inline float power_of_two(int exponent) {
  return __uint_as_float(static_cast<std::uint32_t>(127 + exponent) << 23);
}

}  // namespace stepcast::cuda
