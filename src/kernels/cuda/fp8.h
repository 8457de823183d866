// SPDX-License-Identifier: Apache-2.0
// Numbers of 8 bits for products (kernels/fp8_format.h), and the kernels that make them of wider
// ones. T is float, Bf16 or Fp16.
#pragma once

#include <cstdint>

#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"
#include "kernels/fp8_format.h"

namespace stepcast::cuda {

struct Fp8 {  // of either format
  std::uint8_t bits;
};

// *largest = the largest magnitude of x, or with `joins` the larger of both. `workspace`:
// kLargestBlocks numbers.
inline constexpr int kLargestBlocks = 512;
template <typename T>
void find_largest(const T* x, std::int64_t count, float* workspace, float* largest, bool joins,
                  Stream stream);

// x times the scale that Fp8CastArguments speaks of (1 where `largest` is null), rounded to the
// nearest and saturated; by rows, and by columns, as the transposed matrix. Either may be null, and
// so may `factor`.
template <typename T>
void cast_to_fp8(Fp8Format format, const T* x, const float* largest, float* factor,
                 std::int64_t rows, std::int64_t columns, Fp8* by_rows, Fp8* by_columns,
                 Stream stream);

void transpose_fp8(const Fp8* from, Fp8* to, std::int64_t rows, std::int64_t columns,
                   Stream stream);

}  // namespace stepcast::cuda
