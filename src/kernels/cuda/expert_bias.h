// SPDX-License-Identifier: Apache-2.0
// Biases of experts, as on the CPU (kernels/cpu/expert_bias.h). Routing weights and their gradients
// are fp32. T is float, Bf16 or Fp16.
#pragma once

#include <cstdint>

#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"

namespace stepcast::cuda {

template <typename T>
void add_weighed_bias(T* data, const T* bias, const float* weights, std::int64_t rows,
                      std::int64_t width, Stream stream);
template <typename T>
void weigh_rows(const T* data, const float* weights, T* out, std::int64_t rows, std::int64_t width,
                Stream stream);
template <typename T>
void bias_products(const T* data, const T* bias, float* out, std::int64_t rows, std::int64_t width,
                   Stream stream);

}  // namespace stepcast::cuda
