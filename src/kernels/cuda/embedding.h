// SPDX-License-Identifier: Apache-2.0
// Token and position tables, as on the CPU. T is float, Bf16 or Fp16, Gradient is T or float.
#pragma once

#include <cstdint>

#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"
#include "kernels/shapes.h"

namespace stepcast::cuda {

template <typename T>
void embed_tokens(const TableSlice& slice, const std::int64_t* tokens, std::int64_t count,
                  const T* table, T* out, Stream stream);
// Adds into table_gradient, a token's rows in their order: the bits do not change from run to run.
// Every token is compared with every other: meant for up to some 10^4 of them.
template <typename T, typename Gradient>
void embed_tokens_backward(const TableSlice& slice, const std::int64_t* tokens, std::int64_t count,
                           const T* gradient, Gradient* table_gradient, Stream stream);

// Row i has position (first_row + i) % sequence.
template <typename T>
void add_positions(T* x, const T* table, std::int64_t rows, std::int64_t first_row,
                   std::int64_t sequence, std::int64_t width, Stream stream);
template <typename T, typename Gradient>
void add_positions_backward(const T* gradient, Gradient* table_gradient, std::int64_t rows,
                            std::int64_t first_row, std::int64_t sequence, std::int64_t width,
                            Stream stream);

}  // namespace stepcast::cuda
