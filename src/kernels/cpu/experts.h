// SPDX-License-Identifier: Apache-2.0
// A mixture of experts runs this between its products (docs/moe.md, "In the executor"): the router,
// the moves of rows, the activation that weighs them. T is float or double.
#pragma once

#include <cstdint>

#include "kernels/shapes.h"

namespace stepcast::cpu {

// Probabilities: the softmax of a token's logits over all experts. Chosen: 1 for the `top_k`
// experts of the largest logits, the lower index first where they are equal; of the largest sums
// of probability and `bias` where there is one; or for those that `choice` says (tokens x top_k).
// Both may be null.
template <typename T>
void route(const RouterShape& shape, const T* logits, const std::int64_t* choice, T* probabilities,
           std::int8_t* chosen, const T* bias = nullptr);

// The gradient of the logits, from those of the weights of the rows that choose_rows() makes.
template <typename T>
void route_backward(const RouterShape& shape, const T* probabilities, const std::int8_t* chosen,
                    const T* weight_gradient, T* logits_gradient);

// One row for each token and expert that it chose: expert by expert, and in the order of the
// tokens. An expert with a capacity has as many rows, the last ones of no token (-1, weight 0).
template <typename T>
void choose_rows(const RouterShape& shape, const T* probabilities, const std::int8_t* chosen,
                 std::int64_t* token_of_row, T* weights);

// How many rows choose_rows() makes for each expert.
void count_rows(const RouterShape& shape, const std::int8_t* chosen, std::int64_t* counts);

// to[r] = from[index[r]]; zeros where the index is negative.
template <typename T>
void take_rows(const T* from, const std::int64_t* index, T* to, std::int64_t rows,
               std::int64_t width);
// to[index[r]] = from[r].
template <typename T>
void put_rows(const T* from, const std::int64_t* index, T* to, std::int64_t rows,
              std::int64_t width);
// to[i] = the sum of all from[r] with index[r] = i, in ascending order of r; zeros where there are
// none. Rows of a negative index are left out.
template <typename T>
void add_rows(const T* from, const std::int64_t* index, T* to, std::int64_t rows,
              std::int64_t targets, std::int64_t width);

// activation() of a row times its weight.
template <typename T>
void expert_activation(ActivationKind kind, const T* up, const T* weights, T* out,
                       std::int64_t rows, std::int64_t width);
template <typename T>
void expert_activation_backward(ActivationKind kind, const T* up, const T* weights,
                                const T* gradient, T* up_gradient, T* weight_gradient,
                                std::int64_t rows, std::int64_t width);

}  // namespace stepcast::cpu
