// SPDX-License-Identifier: Apache-2.0
// Matrices and heads of one type in memory, where rows may be parts of longer ones. The functions
// behind the interface take them; the interface itself speaks of arrays (kernels/kernels.h).
#pragma once

#include <cstdint>

namespace stepcast {

template <typename T>
struct Matrix {
  T* data;
  std::int64_t stride;      // elements from one row to the next
  bool transposed = false;  // a product takes the transpose
};

// Heads inside rows of tokens: element (b, s, h, i) is at
// data[(b*sequence + s)*stride + h*head_dim + i], with value_width() for head_dim of values.
template <typename T>
struct Heads {
  T* data;
  std::int64_t stride;
};

}  // namespace stepcast
