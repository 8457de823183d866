// SPDX-License-Identifier: Apache-2.0
// Dropout (Srivastava et al. 2014), by itself or of a branch on its way into the residual stream. T
// is float or double.
#pragma once

#include <cstdint>

#include "kernels/dropout_shape.h"

namespace stepcast::cpu {

// out = the kept elements of x + bias, scaled, + residual. `bias` (by columns) and `residual` may
// be null; the mask has 1 for what is kept.
template <typename T>
void dropout(const DropoutShape& shape, const T* x, const T* bias, const T* residual, T* out,
             std::int8_t* mask);
template <typename T>
void dropout_backward(const DropoutShape& shape, const T* gradient, const std::int8_t* mask,
                      T* out);

}  // namespace stepcast::cpu
