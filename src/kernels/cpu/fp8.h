// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "kernels/fp8_format.h"

namespace stepcast::cpu {

// To the nearest, ties to even; beyond the largest number that one; no number stays none.
std::uint8_t to_fp8(float x, Fp8Format format);
std::span<const float, 256> fp8_values(Fp8Format format);  // by their bits

// The largest magnitude among them, 0 of none.
float largest_of(const float* x, std::int64_t count);
// The scale that Fp8CastArguments speaks of is 2 to the power of this.
int scale_exponent(float largest, Fp8Format format);

// x times 2^exponent, by rows and by columns. Either may be null.
void cast_to_fp8(const float* x, std::int64_t rows, std::int64_t columns, Fp8Format format,
                 int exponent, std::uint8_t* by_rows, std::uint8_t* by_columns);
// Writes what they stand for.
void expand_fp8(const std::uint8_t* from, std::int64_t count, const Fp8Numbers& numbers, float* to);

}  // namespace stepcast::cpu
