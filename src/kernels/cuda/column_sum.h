// SPDX-License-Identifier: Apache-2.0
// Sums over the rows of a matrix: of as many slices of rows as there are, then of the slices,
// always in the same order.
#pragma once

#include <cstdint>

#include "kernels/cuda/stream.h"

namespace stepcast::cuda {

inline constexpr int kColumnSlices = 256;

// Elements of workspace that the gradient of one vector of `columns` weights takes.
constexpr std::int64_t column_sum_workspace(std::int64_t columns) {
  return kColumnSlices * columns;
}

// out[c] (+)= sum over slices of of_slices[slice*stride + c]. T is float, Bf16 or Fp16.
template <typename T>
void sum_slices(const float* of_slices, std::int64_t slices, std::int64_t stride, T* out,
                std::int64_t columns, bool accumulate, Stream stream);

}  // namespace stepcast::cuda
