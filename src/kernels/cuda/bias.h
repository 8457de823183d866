// SPDX-License-Identifier: Apache-2.0
// Biases by columns. T is float, Bf16 or Fp16.
#pragma once

#include <cstdint>

#include "kernels/cuda/column_sum.h"
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"

namespace stepcast::cuda {

// data[r, c] += bias[c].
template <typename T>
void add_bias(T* data, const T* bias, std::int64_t rows, std::int64_t columns, Stream stream);

// gradient[c] (+)= sum over rows of data[r, c]. Gradient is T or float. `workspace`:
// column_sum_workspace(columns) elements.
template <typename T, typename Gradient>
void bias_gradient(const T* data, Gradient* gradient, std::int64_t rows, std::int64_t columns,
                   bool accumulate, float* workspace, Stream stream);

}  // namespace stepcast::cuda
