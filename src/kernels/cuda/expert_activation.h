// SPDX-License-Identifier: Apache-2.0
// The activation of experts, as on the CPU (kernels/cpu/experts.h): of rows, each times its routing
// weight, which is fp32. T is float, Bf16 or Fp16.
#pragma once

#include <cstdint>

#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"
#include "kernels/shapes.h"

namespace stepcast::cuda {

template <typename T>
void expert_activation(ActivationKind kind, const T* up, const float* weights, T* out,
                       std::int64_t rows, std::int64_t width, Stream stream);
template <typename T>
void expert_activation_backward(ActivationKind kind, const T* up, const float* weights,
                                const T* gradient, T* up_gradient, float* weight_gradient,
                                std::int64_t rows, std::int64_t width, Stream stream);

}  // namespace stepcast::cuda
