// SPDX-License-Identifier: Apache-2.0
// Latent attention's rotations and the packing of its keys and values, as on the CPU
// (kernels/cpu/latent_rotary.h). T is float, Bf16 or Fp16; `table` is that of kernels/cuda/rotary.h
// for `shape.rotary` elements.
#pragma once

#include <cstdint>

#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"
#include "kernels/shapes.h"
#include "kernels/strided.h"

namespace stepcast::cuda {

template <typename T>
void latent_rotary(const LatentShape& shape, T* query, const T* up, Heads<const T> rotary_key,
                   T* key, T* value, const float* table, Stream stream);
template <typename T>
void latent_rotary_backward(const LatentShape& shape, T* query_gradient, const T* key_gradient,
                            const T* value_gradient, T* up_gradient, T* rotary_gradient,
                            const float* table, Stream stream);

}  // namespace stepcast::cuda
