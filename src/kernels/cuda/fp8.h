// SPDX-License-Identifier: Apache-2.0
// Tensors in fp8 (E4M3), each with one scale: x is out * scale, and the largest |x| becomes the
// largest number of the format (Micikevicius et al. 2022).
#pragma once

#include <cstdint>

#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"

namespace stepcast::cuda {

// T is float, Bf16 or Fp16. Where all of x is 0, the scale is 1. `scale` and `largest` (workspace)
// are single numbers in device memory.
template <typename T>
void quantize(const T* x, Fp8* out, float* scale, float* largest, std::int64_t count,
              Stream stream);

}  // namespace stepcast::cuda
