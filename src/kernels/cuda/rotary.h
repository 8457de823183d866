// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding, as on the CPU. T is float, Bf16 or Fp16; angles are in double.
#pragma once

#include <cstdint>

#include "kernels/cpu/rotary.h"
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"

namespace stepcast::cuda {

using cpu::Heads;
using cpu::kRotaryBase;

// In place where `out` is `in`. Backward turns the other way. head_dim is even, at most 512.
template <typename T>
void rotary(std::int64_t batch, std::int64_t sequence, std::int64_t heads, std::int64_t head_dim,
            Heads<const T> in, Heads<T> out, bool backward, Stream stream);

}  // namespace stepcast::cuda
