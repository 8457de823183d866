// SPDX-License-Identifier: Apache-2.0
// Floating-point numbers of 16 and 8 bits as kernels keep them in memory, and their conversions on
// the host. Rounding is to nearest, ties to even, as in hardware. Plain C++: no toolkit is needed.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace stepcast::cuda {

struct Bf16 {  // 8 bits of exponent, 7 of fraction
  std::uint16_t bits;
};
struct Fp16 {  // 5 bits of exponent, 10 of fraction
  std::uint16_t bits;
};
struct Fp8 {  // E4M3: 4 bits of exponent, 3 of fraction, no infinity, largest 448
  std::uint8_t bits;
};

inline constexpr float kLargestFp8 = 448;

// The rounding unit: half the distance from 1 to the next number.
template <typename T>
inline constexpr double kRoundingUnit = 0x1p-24;
template <>
inline constexpr double kRoundingUnit<Bf16> = 0x1p-8;
template <>
inline constexpr double kRoundingUnit<Fp16> = 0x1p-11;
template <>
inline constexpr double kRoundingUnit<Fp8> = 0x1p-4;

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
inline float to_float(Fp8 x) {
  const int exponent = x.bits >> 3 & 15;
  const auto fraction = static_cast<float>(x.bits & 7);
  float value = (x.bits & 127) == 127 ? NAN
                : exponent == 0       ? std::ldexp(fraction, -9)
                                      : std::ldexp(fraction + 8, exponent - 10);
  return (x.bits & 0x80) != 0 ? -value : value;
}

// The nearest multiple of 2^(exponent of x - bits), no finer than 2^least: what a format with so
// many bits of fraction keeps of it.
inline float nearest(float x, int bits, int least) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int unit = std::max(std::ilogb(x) - bits, least);
  return std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
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
// Beyond the largest number: the largest number.
template <>
inline Fp8 rounded<Fp8>(float x) {
  const int sign = std::signbit(x) ? 0x80 : 0;
  if (std::isnan(x)) return {0x7f};
  const float value = std::fmin(std::fabs(nearest(x, 3, -9)), kLargestFp8);
  int bits = 0;
  if (value < 0x1p-6F) {
    bits = static_cast<int>(std::ldexp(value, 9));
  } else {
    const int exponent = std::ilogb(value);
    bits = (exponent + 6) * 8 + static_cast<int>(std::ldexp(value, 3 - exponent));
  }
  return {static_cast<std::uint8_t>(sign | bits)};
}

}  // namespace stepcast::cuda
