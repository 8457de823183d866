// SPDX-License-Identifier: Apache-2.0
// Causal attention softmax(Q K^T / sqrt(d)) V by tiles that never hold the whole score matrix
// (Dao et al. 2022; Dao 2023), and the pieces of the unfused form. T is float or double.
#pragma once

#include <cstdint>

#include "kernels/shapes.h"
#include "kernels/strided.h"

namespace stepcast::cpu {

// log_sum_exp: batch x heads x sequence.
template <typename T>
void attention(const AttentionShape& shape, Heads<const T> query, Heads<const T> key,
               Heads<const T> value, Heads<T> context, T* log_sum_exp);

// Writes all three gradients. `query_accumulator`: batch*sequence*heads*head_dim elements of
// workspace.
template <typename T>
void attention_backward(const AttentionShape& shape, Heads<const T> query, Heads<const T> key,
                        Heads<const T> value, Heads<const T> context, const T* log_sum_exp,
                        Heads<const T> context_gradient, Heads<T> query_gradient,
                        Heads<T> key_gradient, Heads<T> value_gradient, T* query_accumulator);

// Unfused, for plain shapes. Scores and probabilities: batch x heads x sequence x sequence.
// scores = Q K^T, unscaled and unmasked.
template <typename T>
void attention_scores(const AttentionShape& shape, Heads<const T> query, Heads<const T> key,
                      T* scores);
// Scales by 1/sqrt(head_dim), masks what is after the query, softmax by rows.
template <typename T>
void masked_softmax(const AttentionShape& shape, const T* scores, T* probabilities);
// by_head: batch x heads x sequence x head_dim.
template <typename T>
void attention_context(const AttentionShape& shape, const T* probabilities, Heads<const T> value,
                       T* by_head);
template <typename T>
void context_transpose(const AttentionShape& shape, const T* by_head, Heads<T> context);
template <typename T>
void context_transpose_backward(const AttentionShape& shape, Heads<const T> context_gradient,
                                T* by_head);
template <typename T>
void probabilities_gradient(const AttentionShape& shape, const T* by_head, Heads<const T> value,
                            T* gradient);
// The next three write batch x heads x sequence x head_dim, one key-value gradient per query head;
// gather_qkv_gradient() sums those of a group.
template <typename T>
void value_gradient(const AttentionShape& shape, const T* probabilities, const T* by_head,
                    T* gradient);
// The gradient of the raw scores: softmax, mask and scale backward.
template <typename T>
void masked_softmax_backward(const AttentionShape& shape, const T* probabilities,
                             const T* probabilities_gradient, T* scores_gradient);
template <typename T>
void query_gradient(const AttentionShape& shape, const T* scores_gradient, Heads<const T> key,
                    T* gradient);
template <typename T>
void key_gradient(const AttentionShape& shape, const T* scores_gradient, Heads<const T> query,
                  T* gradient);
template <typename T>
void gather_qkv_gradient(const AttentionShape& shape, const T* query_gradient,
                         const T* key_gradient, const T* value_gradient, Heads<T> query,
                         Heads<T> key, Heads<T> value);

}  // namespace stepcast::cpu
