// SPDX-License-Identifier: Apache-2.0
// Numbers of 8 bits for products (Micikevicius et al. 2022): 4 bits of exponent and 3 of fraction
// up to 448 for what goes forward, 5 and 2 up to 57,344 for gradients.
#pragma once

#include <algorithm>
#include <cstdint>

namespace stepcast {

enum class Fp8Format { kE4m3, kE5m2 };

struct Fp8Layout {
  int fraction_bits, bias;
  int top;                    // the largest number is 1.75 * 2^top
  std::uint8_t largest_code;  // without its sign
};
template <Fp8Format>
inline constexpr Fp8Layout kFp8Layout{3, 7, 8, 0x7e};
template <>
inline constexpr Fp8Layout kFp8Layout<Fp8Format::kE5m2>{2, 15, 15, 0x7b};

constexpr Fp8Layout layout_of(Fp8Format format) {
  return format == Fp8Format::kE4m3 ? kFp8Layout<Fp8Format::kE4m3> : kFp8Layout<Fp8Format::kE5m2>;
}

// Numbers of 8 bits stand for themselves times *factor, which lies in the device's memory.
// Null: 1.
struct Fp8Numbers {
  Fp8Format format = Fp8Format::kE4m3;
  const float* factor = nullptr;
};

}  // namespace stepcast
