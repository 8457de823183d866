// SPDX-License-Identifier: Apache-2.0
// LayerNorm and RMSNorm over rows of `width` elements, as on the CPU. T is float, Bf16 or Fp16;
// statistics and arithmetic are in fp32.
#pragma once

#include <cstdint>

#include "kernels/cuda/column_sum.h"
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"
#include "kernels/shapes.h"

namespace stepcast::cuda {

// `bias` may be null.
template <typename T>
void norm(NormKind kind, const T* x, const T* weight, const T* bias, T* y, std::int64_t rows,
          std::int64_t width, std::int64_t x_stride, std::int64_t y_stride, Stream stream);

// A branch joins the residual stream before the norm: sum = branch (+ branch_bias by columns, may
// be null) + residual, and y is the norm of the sum as T holds it. All rows lie behind each other.
template <typename T>
void add_norm(NormKind kind, const T* branch, const T* branch_bias, const T* residual,
              const T* weight, const T* bias, T* sum, T* y, std::int64_t rows, std::int64_t width,
              Stream stream);

// The widest rows that norm_backward takes: it keeps a row in registers.
inline constexpr std::int64_t kWidestNorm = 20480;

// dx is written and lies as dy does (it may be dy), and so does `residual`, which is added to it
// (may be null); weight_gradient and bias_gradient (may be null) are written, or added to. Gradient
// is T or float. `workspace`: 2*column_sum_workspace(width) elements. Throws CudaError for rows
// wider than kWidestNorm.
template <typename T, typename Gradient>
void norm_backward(NormKind kind, const T* x, const T* weight, const T* dy, const T* residual,
                   T* dx, Gradient* weight_gradient, Gradient* bias_gradient, bool accumulate,
                   std::int64_t rows, std::int64_t width, std::int64_t x_stride,
                   std::int64_t dy_stride, float* workspace, Stream stream);

}  // namespace stepcast::cuda
