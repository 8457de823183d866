// SPDX-License-Identifier: Apache-2.0
// Numbers of 8 bits for products (Micikevicius et al. 2022, E4M3: up to 448, without infinities),
// and the kernels that make them of wider ones. T is float, Bf16 or Fp16.
#pragma once

#include <cstdint>

#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"

namespace stepcast::cuda {

struct Fp8 {  // 4 bits of exponent, 3 of fraction
  std::uint8_t bits;
};
inline constexpr float kLargestFp8 = 448;

// *largest = the largest magnitude of x. `workspace`: kLargestBlocks numbers.
inline constexpr int kLargestBlocks = 512;
template <typename T>
void find_largest(const T* x, std::int64_t count, float* workspace, float* largest, Stream stream);

// x times kLargestFp8 / *largest (a scale of 1 where `largest` is null or 0), rounded to the
// nearest and saturated; by rows, and by columns, as the transposed matrix. Either may be null.
template <typename T>
void cast_to_fp8(const T* x, const float* largest, std::int64_t rows, std::int64_t columns,
                 Fp8* by_rows, Fp8* by_columns, Stream stream);

}  // namespace stepcast::cuda
