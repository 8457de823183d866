// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/fp8.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace stepcast::cpu {
namespace {

std::array<float, 256> all_values(Fp8Format format) {
  const Fp8Layout layout = layout_of(format);
  const int ones = 1 << layout.fraction_bits;
  std::array<float, 256> out{};
  for (int bits = 0; bits < 128; ++bits) {
    const int exponent = bits / ones, fraction = bits % ones;
    const int unit = std::max(exponent, 1) - layout.bias - layout.fraction_bits;
    const float value =
        std::ldexp(static_cast<float>(exponent > 0 ? ones + fraction : fraction), unit);
    const bool is_number = bits <= layout.largest_code;
    out[static_cast<std::size_t>(bits)] = is_number ? value : std::nanf("");
    out[static_cast<std::size_t>(bits + 128)] = is_number ? -value : std::nanf("");
  }
  return out;
}

}  // namespace

std::span<const float, 256> fp8_values(Fp8Format format) {
  static const std::array<float, 256> forward = all_values(Fp8Format::kE4m3),
                                      gradients = all_values(Fp8Format::kE5m2);
  return format == Fp8Format::kE4m3 ? forward : gradients;
}

std::uint8_t to_fp8(float x, Fp8Format format) {
  const Fp8Layout layout = layout_of(format);
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint8_t>(bits >> 24 & 0x80);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  constexpr std::uint32_t kInfinity = 0x7f800000;
  if (magnitude > kInfinity) return sign | 0x7f;
  if (magnitude < static_cast<std::uint32_t>(128 - layout.bias) << 23) {
    // Multiples of 2^(1 - bias - fraction bits), which are the units of a float this large.
    const auto units = static_cast<std::uint32_t>(151 - layout.bias - layout.fraction_bits) << 23;
    const float shifted = std::bit_cast<float>(magnitude) + std::bit_cast<float>(units);
    return static_cast<std::uint8_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - units));
  }
  const int dropped = 23 - layout.fraction_bits;
  const std::uint32_t half = (std::uint32_t{1} << (dropped - 1)) - 1;
  const std::uint32_t rounded = magnitude + half + (magnitude >> dropped & 1);
  const std::uint32_t code =
      (rounded - (static_cast<std::uint32_t>(127 - layout.bias) << 23)) >> dropped;
  return static_cast<std::uint8_t>(sign | std::min<std::uint32_t>(code, layout.largest_code));
}

float largest_of(const float* x, std::int64_t count) {
  float most = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const float magnitude = std::fabs(x[i]);
    most = magnitude > most || std::isnan(magnitude) ? magnitude : most;
    if (std::isnan(most)) return most;
  }
  return most;
}

int scale_exponent(float largest, Fp8Format format) {
  constexpr int kMost = 120;  // a float has one over the scale, too
  if (largest == 0 || !std::isfinite(largest)) return 0;
  const int of_largest = std::max(std::ilogb(largest), -127);
  const int exponent = layout_of(format).top - of_largest;
  const bool too_large = std::ldexp(largest, -of_largest) > 1.75F;
  return std::min(too_large ? exponent - 1 : exponent, kMost);
}

void cast_to_fp8(const float* x, std::int64_t rows, std::int64_t columns, Fp8Format format,
                 int exponent, std::uint8_t* by_rows, std::uint8_t* by_columns) {
  const float scale = std::ldexp(1.0F, exponent);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t at = row * columns + column;
      const std::uint8_t bits = to_fp8(x[at] * scale, format);
      if (by_rows != nullptr) by_rows[at] = bits;
      if (by_columns != nullptr) by_columns[column * rows + row] = bits;
    }
  }
}

void expand_fp8(const std::uint8_t* from, std::int64_t count, const Fp8Numbers& numbers,
                float* to) {
  const std::span<const float, 256> values = fp8_values(numbers.format);
  const float factor = numbers.factor == nullptr ? 1 : *numbers.factor;
  for (std::int64_t i = 0; i < count; ++i) to[i] = values[from[i]] * factor;
}

}  // namespace stepcast::cpu
