// SPDX-License-Identifier: Apache-2.0
// Fused attention, as on the CPU (Dao 2023): 16-bit types on tensor cores with fp32 accumulation,
// fp32 on CUDA cores. Heads of up to 256 elements; those of 64, 80, 96, 128 and 256 waste no work.
// Both directions give the same bits every time. Backward, heads of more than 128 need 132 KiB of
// shared memory in a block: sm_80 and sm_90 have them, sm_86 and sm_89 do not.
#pragma once

#include <cstdint>

#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"
#include "kernels/shapes.h"
#include "kernels/strided.h"

namespace stepcast::cuda {

inline constexpr std::int64_t kLargestHead = 256;

// log_sum_exp: batch x heads x sequence, natural.
template <typename T>
void attention(const AttentionShape& shape, Heads<const T> query, Heads<const T> key,
               Heads<const T> value, Heads<T> context, float* log_sum_exp, Stream stream);

// When few heads have keys, backward deals the query heads of a group into parts, so that there are
// blocks enough; each part has sums of its own for the gradients of keys and values, in fp32.
// Returns how many elements they take; 0 when nothing is dealt.
template <typename T>
std::int64_t attention_key_sums(const AttentionShape& shape);

// Writes all three gradients. `row_products`: batch*heads*sequence elements of workspace;
// `key_sums`: attention_key_sums() of them.
template <typename T>
void attention_backward(const AttentionShape& shape, Heads<const T> query, Heads<const T> key,
                        Heads<const T> value, Heads<const T> context, const float* log_sum_exp,
                        Heads<const T> context_gradient, Heads<T> query_gradient,
                        Heads<T> key_gradient, Heads<T> value_gradient, float* row_products,
                        float* key_sums, Stream stream);

}  // namespace stepcast::cuda
