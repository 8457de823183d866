// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/embedding.h"

#include <algorithm>

#include "kernels/cpu/elementwise.h"

namespace stepcast::cpu {
namespace {

bool holds(const TableSlice& slice, std::int64_t token) {
  return token >= slice.first && token < slice.first + slice.rows;
}

}  // namespace

template <typename T>
void embed_tokens(const TableSlice& slice, const std::int64_t* tokens, std::int64_t count,
                  const T* table, T* out) {
  for (std::int64_t i = 0; i < count; ++i, out += slice.width) {
    if (holds(slice, tokens[i])) {
      std::copy_n(table + (tokens[i] - slice.first) * slice.width, slice.width, out);
    } else {
      std::fill_n(out, slice.width, T(0));
    }
  }
}

template <typename T>
void embed_tokens_backward(const TableSlice& slice, const std::int64_t* tokens, std::int64_t count,
                           const T* gradient, T* table_gradient) {
  for (std::int64_t i = 0; i < count; ++i, gradient += slice.width) {
    if (!holds(slice, tokens[i])) continue;
    T* row = table_gradient + (tokens[i] - slice.first) * slice.width;
    accumulate(gradient, row, slice.width);
  }
}

template <typename T>
void add_positions(T* x, const T* table, std::int64_t rows, std::int64_t first_row,
                   std::int64_t sequence, std::int64_t width) {
  for (std::int64_t i = 0; i < rows; ++i) {
    accumulate(table + (first_row + i) % sequence * width, x + i * width, width);
  }
}

template <typename T>
void add_positions_backward(const T* gradient, T* table_gradient, std::int64_t rows,
                            std::int64_t first_row, std::int64_t sequence, std::int64_t width) {
  for (std::int64_t i = 0; i < rows; ++i) {
    accumulate(gradient + i * width, table_gradient + (first_row + i) % sequence * width, width);
  }
}

#define STEPCAST_INSTANTIATE(T)                                                                   \
  template void embed_tokens(const TableSlice&, const std::int64_t*, std::int64_t, const T*, T*); \
  template void embed_tokens_backward(const TableSlice&, const std::int64_t*, std::int64_t,       \
                                      const T*, T*);                                              \
  template void add_positions(T*, const T*, std::int64_t, std::int64_t, std::int64_t,             \
                              std::int64_t);                                                      \
  template void add_positions_backward(const T*, T*, std::int64_t, std::int64_t, std::int64_t,    \
                                       std::int64_t);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(double)

}  // namespace stepcast::cpu
