// SPDX-License-Identifier: Apache-2.0
// GELU (tanh form) and SwiGLU, as on the CPU. T is float, Bf16 or Fp16; arithmetic is in fp32.
#pragma once

#include <cstdint>

#include "kernels/cuda/column_sum.h"
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"
#include "kernels/shapes.h"

namespace stepcast::cuda {

// up: rows x (width or 2*width); out: rows x width. `bias` may be null. `linear`, where it is not
// null, holds the second halves of SwiGLU's rows, and `up` the first.
template <typename T>
void activation(ActivationKind kind, const T* up, const T* bias, T* out, std::int64_t rows,
                std::int64_t width, Stream stream, const T* linear = nullptr);

// Asks backward for the gradient of the bias, and says whether it overwrites `gradient` or adds.
template <typename Gradient>
struct ActivationBias {
  Gradient* gradient;
  bool accumulate;
  float* workspace;  // column_sum_workspace(width or 2*width) elements
};

// `bias_gradient` may be null.
template <typename T, typename Gradient>
void activation_backward(ActivationKind kind, const T* up, const T* bias, const T* gradient,
                         T* up_gradient, const ActivationBias<Gradient>* bias_gradient,
                         std::int64_t rows, std::int64_t width, Stream stream,
                         const T* linear = nullptr);

}  // namespace stepcast::cuda
