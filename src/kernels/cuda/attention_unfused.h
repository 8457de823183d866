// SPDX-License-Identifier: Apache-2.0
// The unfused form of attention, as on the CPU: each step over all scores, as separate kernels.
// Scores and probabilities: batch x heads x sequence x sequence; by_head and its like: batch x
// heads x sequence x head_dim. T is float, Bf16 or Fp16.
#pragma once

#include <cstdint>

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"
#include "kernels/shapes.h"
#include "kernels/strided.h"

namespace stepcast::cuda {

// Scales by 1/sqrt(head_dim), masks what is after the query, softmax by rows. May be in place.
template <typename T>
void masked_softmax(const AttentionShape& shape, const T* scores, T* probabilities, Stream stream);
// The gradient of the raw scores: softmax, mask and scale backward. May be in place.
template <typename T>
void masked_softmax_backward(const AttentionShape& shape, const T* probabilities,
                             const T* probabilities_gradient, T* scores_gradient, Stream stream);
template <typename T>
void context_transpose(const AttentionShape& shape, const T* by_head, Heads<T> context,
                       Stream stream);
template <typename T>
void context_transpose_backward(const AttentionShape& shape, Heads<const T> context_gradient,
                                T* by_head, Stream stream);
// Sums the gradients of keys and values, one per query head, over a group of heads.
template <typename T>
void gather_qkv_gradient(const AttentionShape& shape, const T* query_gradient,
                         const T* key_gradient, const T* value_gradient, Heads<T> query,
                         Heads<T> key, Heads<T> value, Stream stream);

// scores = Q K^T, unscaled and unmasked.
template <typename T>
void attention_scores(MatrixProducts& products, const AttentionShape& shape, Heads<const T> query,
                      Heads<const T> key, T* scores, Stream stream);
template <typename T>
void attention_context(MatrixProducts& products, const AttentionShape& shape,
                       const T* probabilities, Heads<const T> value, T* by_head, Stream stream);
template <typename T>
void probabilities_gradient(MatrixProducts& products, const AttentionShape& shape, const T* by_head,
                            Heads<const T> value, T* gradient, Stream stream);
template <typename T>
void value_gradient(MatrixProducts& products, const AttentionShape& shape, const T* probabilities,
                    const T* by_head, T* gradient, Stream stream);
template <typename T>
void query_gradient(MatrixProducts& products, const AttentionShape& shape, const T* scores_gradient,
                    Heads<const T> key, T* gradient, Stream stream);
template <typename T>
void key_gradient(MatrixProducts& products, const AttentionShape& shape, const T* scores_gradient,
                  Heads<const T> query, T* gradient, Stream stream);

}  // namespace stepcast::cuda
