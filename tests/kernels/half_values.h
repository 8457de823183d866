// SPDX-License-Identifier: Apache-2.0
// Numbers of 16 bits converted on the host, as the emulated device and the tests need it. Rounding
// is to nearest, ties to even, as in hardware.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/cuda/fp8.h"
#include "kernels/cuda/half_types.h"

namespace stepcast::cuda {

// The rounding unit: half the distance from 1 to the next number.
template <typename T>
inline constexpr double kRoundingUnit = 0x1p-24;
template <>
inline constexpr double kRoundingUnit<Bf16> = 0x1p-8;
template <>
inline constexpr double kRoundingUnit<Fp16> = 0x1p-11;

inline float to_float(float x) { return x; }
inline float to_float(Bf16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}
inline float to_float(Fp16 x) {
  // Under an exponent of 8 bits the number is 2^112 too small, and a subnormal one stays exact.
  const float value = std::bit_cast<float>((x.bits & 0x7fffU) << 13) * 0x1p112F;
  const bool finite = (x.bits & 0x7c00) != 0x7c00;
  const float magnitude = finite ? value : (x.bits & 1023) == 0 ? INFINITY : NAN;
  return (x.bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// The nearest multiple of 2^(exponent of x - bits), no finer than 2^least: what a format with so
// many bits of fraction keeps of it.
inline float nearest(float x, int bits, int least) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int unit = std::max(std::ilogb(x) - bits, least);
  return std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
}

inline float to_float(Fp8 x, Fp8Format format = Fp8Format::kE4m3) {
  const Fp8Layout layout = layout_of(format);
  const int magnitude = x.bits & 0x7f, ones = 1 << layout.fraction_bits;
  const int exponent = magnitude / ones, fraction = magnitude % ones;
  const int unit = std::max(exponent, 1) - layout.bias - layout.fraction_bits;
  const bool infinite = format == Fp8Format::kE5m2 && magnitude == layout.largest_code + 1;
  const float value =
      infinite ? INFINITY
      : magnitude > layout.largest_code
          ? NAN
          : std::ldexp(static_cast<float>(exponent > 0 ? ones + fraction : fraction), unit);
  return (x.bits & 0x80) != 0 ? -value : value;
}

template <typename T>
T rounded(float x);
template <>
inline float rounded<float>(float x) {
  return x;
}
template <>
inline Bf16 rounded<Bf16>(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (std::isnan(x)) return {0x7fff};
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
template <>
inline Fp16 rounded<Fp16>(float x) {
  const int sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return {0x7fff};
  const float value = std::fabs(nearest(x, 10, -24));
  int bits = 0;
  if (value >= 65536) {
    bits = 0x7c00;
  } else if (value < 0x1p-14F) {
    bits = static_cast<int>(std::ldexp(value, 24));
  } else {
    const int exponent = std::ilogb(value);
    bits = (exponent + 14) * 1024 + static_cast<int>(std::ldexp(value, 10 - exponent));
  }
  return {static_cast<std::uint16_t>(sign | bits)};
}

}  // namespace stepcast::cuda
