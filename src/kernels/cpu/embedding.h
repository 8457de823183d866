// SPDX-License-Identifier: Apache-2.0
// Token and position tables. A vocabulary-parallel table holds rows [first, first + rows) of the
// vocabulary; other tokens give zeros and take no gradient. T is float or double.
#pragma once

#include <cstdint>

#include "kernels/shapes.h"

namespace stepcast::cpu {

template <typename T>
void embed_tokens(const TableSlice& slice, const std::int64_t* tokens, std::int64_t count,
                  const T* table, T* out);
// Adds into table_gradient.
template <typename T>
void embed_tokens_backward(const TableSlice& slice, const std::int64_t* tokens, std::int64_t count,
                           const T* gradient, T* table_gradient);

// x[i] += table[first_position + i modulo sequence], i counting the rows of x; rows of one sequence
// are contiguous: row i has position (first_row + i) % sequence.
template <typename T>
void add_positions(T* x, const T* table, std::int64_t rows, std::int64_t first_row,
                   std::int64_t sequence, std::int64_t width);
template <typename T>
void add_positions_backward(const T* gradient, T* table_gradient, std::int64_t rows,
                            std::int64_t first_row, std::int64_t sequence, std::int64_t width);

}  // namespace stepcast::cpu
