// SPDX-License-Identifier: Apache-2.0
// One head of one sequence as a matrix of sequence x head_dim elements, or of another width.
#pragma once

#include <cstdint>

#include "kernels/shapes.h"
#include "kernels/strided.h"

namespace stepcast::cpu {

template <typename T>
Matrix<T> head_of(const AttentionShape& shape, const Heads<T>& heads, std::int64_t b,
                  std::int64_t h, std::int64_t width) {
  return {heads.data + b * shape.sequence * heads.stride + h * width, heads.stride};
}
template <typename T>
Matrix<T> head_of(const AttentionShape& shape, const Heads<T>& heads, std::int64_t b,
                  std::int64_t h) {
  return head_of(shape, heads, b, h, shape.head_dim);
}

inline std::int64_t kv_head_of(const AttentionShape& shape, std::int64_t h) {
  return h / (shape.heads / shape.kv_heads);
}

template <typename T>
Matrix<T> rows_from(const Matrix<T>& matrix, std::int64_t row) {
  return {matrix.data + row * matrix.stride, matrix.stride, matrix.transposed};
}

template <typename T>
Matrix<const T> transposed(const Matrix<const T>& matrix) {
  return {matrix.data, matrix.stride, !matrix.transposed};
}

}  // namespace stepcast::cpu
