// SPDX-License-Identifier: Apache-2.0
// GELU (tanh form, Hendrycks and Gimpel 2016) of x + bias, and SwiGLU (Shazeer 2020): a row of `up`
// is [gate | linear], the result silu(gate + bias) * (linear + bias). `bias` may be null. Where
// `linear` is not, it holds the rows' second halves and `up` the first. T is float or double.
#pragma once

#include <cstdint>

#include "kernels/shapes.h"

namespace stepcast::cpu {

// up: rows x (width or 2*width); out: rows x width.
template <typename T>
void activation(ActivationKind kind, const T* up, const T* bias, T* out, std::int64_t rows,
                std::int64_t width, const T* linear = nullptr);

template <typename T>
void activation_backward(ActivationKind kind, const T* up, const T* bias, const T* gradient,
                         T* up_gradient, std::int64_t rows, std::int64_t width,
                         const T* linear = nullptr);

}  // namespace stepcast::cpu
