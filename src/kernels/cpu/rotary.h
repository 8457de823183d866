// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding (Su et al. 2021), halves of a head paired as in GPT-NeoX and Llama:
// element i of the first half turns with element i of the second by position * kRotaryBase^(-2i/d).
// T is float or double.
#pragma once

#include <cstdint>

#include "kernels/shapes.h"
#include "kernels/strided.h"

namespace stepcast::cpu {

// Works in place if `out` is `in`. Backward turns the other way.
template <typename T>
void rotary(std::int64_t batch, std::int64_t sequence, std::int64_t heads, std::int64_t head_dim,
            Heads<const T> in, Heads<T> out, bool backward, const SequencePlaces& places = {});

}  // namespace stepcast::cpu
