// SPDX-License-Identifier: Apache-2.0
// Numbers to measure with. Zeros would make kernels look faster, because they switch fewer
// transistors.
#pragma once

#include <cstdint>

#include "kernels/cuda/fp8.h"
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"

namespace stepcast::cuda {

// Numbers in [-1, 1) from a hash of their position. T is float, Bf16, Fp16 or Fp8.
template <typename T>
void fill_with_noise(T* data, std::int64_t count, std::uint32_t seed, Stream stream);

}  // namespace stepcast::cuda
