// SPDX-License-Identifier: Apache-2.0
// Our products are row-major, those of cuBLAS column-major. A row-major matrix is, read by columns,
// its transpose; so C = op(A) op(B) becomes C^T = op(B)^T op(A)^T, the operands change places, and
// nothing is moved.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/strided.h"

namespace stepcast::cuda {

// Describes a matrix as it lies in memory, by columns.
struct ColumnMajorMatrix {
  std::int64_t rows, columns;
  std::int64_t leading;  // elements from one column to the next
  bool transposed;       // on the way into the product
};

// out[m, n] = op(first)[m, k] op(second)[k, n]: `first` is our B, `second` our A.
struct ColumnMajorGemm {
  std::int64_t m, n, k;
  ColumnMajorMatrix first, second, out;
};

// A matrix that is rows x columns in memory, row-major. The stride of a single row says nothing.
template <typename T>
ColumnMajorMatrix column_major(const Matrix<T>& matrix, std::int64_t rows, std::int64_t columns) {
  const std::int64_t leading = rows == 1 ? std::max(matrix.stride, columns) : matrix.stride;
  return {columns, rows, leading, matrix.transposed};
}

template <typename A, typename B, typename C>
ColumnMajorGemm column_major(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix<A>& a,
                             const Matrix<B>& b, const Matrix<C>& c) {
  const auto stored = [](const auto& matrix, std::int64_t rows, std::int64_t columns) {
    return matrix.transposed ? column_major(matrix, columns, rows)
                             : column_major(matrix, rows, columns);
  };
  return {n, m, k, stored(b, k, n), stored(a, m, k), stored(c, m, n)};
}

}  // namespace stepcast::cuda
