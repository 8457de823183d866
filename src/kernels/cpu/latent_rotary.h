// SPDX-License-Identifier: Apache-2.0
// Latent attention does this between its up-projections and attention (DeepSeek-V2, section 2.1).
// A head of a query or key is [plain | rotary]; the rotary part of a key is one for all heads. A
// head of `up` is [plain part of the key | value]. Rows are tokens, heads lie beside each other.
// T is float or double.
#pragma once

#include <cstdint>

#include "kernels/shapes.h"
#include "kernels/strided.h"

namespace stepcast::cpu {

// Turns the rotary parts of the queries in place, and makes keys and values.
template <typename T>
void latent_rotary(const LatentShape& shape, T* query, const T* up, Heads<const T> rotary_key,
                   T* key, T* value);

// Takes gradients of queries (in place), keys and values, and makes those before the rotation, that
// of `up`, and that of the rotary key, the sum over the heads.
template <typename T>
void latent_rotary_backward(const LatentShape& shape, T* query_gradient, const T* key_gradient,
                            const T* value_gradient, T* up_gradient, T* rotary_gradient);

}  // namespace stepcast::cpu
