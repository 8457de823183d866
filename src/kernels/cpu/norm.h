// SPDX-License-Identifier: Apache-2.0
// LayerNorm (Ba et al. 2016) and RMSNorm (Zhang and Sennrich 2019) over rows of `width` elements.
// y = (x - mean)/sqrt(var + eps) * weight + bias, or x/sqrt(mean(x^2) + eps) * weight. `bias` may
// be null. Statistics are recomputed backward: nothing but x is saved. T is float or double.
#pragma once

#include <cstdint>

#include "kernels/shapes.h"

namespace stepcast::cpu {

template <typename T>
void norm(NormKind kind, const T* x, const T* weight, const T* bias, T* y, std::int64_t rows,
          std::int64_t width, std::int64_t x_stride, std::int64_t y_stride);

// dx is written and lies as dy does (it may be dy); weight_gradient and bias_gradient (may be null)
// are written, or added to.
template <typename T>
void norm_backward(NormKind kind, const T* x, const T* weight, const T* dy, T* dx,
                   T* weight_gradient, T* bias_gradient, bool accumulate, std::int64_t rows,
                   std::int64_t width, std::int64_t x_stride, std::int64_t dy_stride);

}  // namespace stepcast::cpu
