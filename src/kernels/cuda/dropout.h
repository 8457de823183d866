// SPDX-License-Identifier: Apache-2.0
// Dropout, by itself or of a branch on its way into the residual stream, as on the CPU
// (kernels/cpu/dropout.h), whose masks it has. T is float, Bf16 or Fp16.
#pragma once

#include <cstdint>

#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"
#include "kernels/dropout_shape.h"

namespace stepcast::cuda {

// `bias` (by columns) and `residual` may be null.
template <typename T>
void dropout(const DropoutShape& shape, const T* x, const T* bias, const T* residual, T* out,
             std::int8_t* mask, Stream stream);
template <typename T>
void dropout_backward(const DropoutShape& shape, const T* gradient, const std::int8_t* mask, T* out,
                      Stream stream);

}  // namespace stepcast::cuda
