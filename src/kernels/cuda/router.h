// SPDX-License-Identifier: Apache-2.0
// The router of a mixture of experts, as on the CPU (kernels/cpu/experts.h). Scores, weights of
// rows and their gradients are fp32. The same bits every time.
#pragma once

#include <cstdint>

#include "kernels/cuda/stream.h"
#include "kernels/shapes.h"

namespace stepcast::cuda {

// `choice` may be null: tokens x top_k experts, in place of those of the largest logits. So may
// `bias`: experts are then those of the largest sums of probability and bias.
void route(const RouterShape& shape, const float* logits, const std::int64_t* choice,
           float* probabilities, std::int8_t* chosen, Stream stream, const float* bias = nullptr);

// So many numbers of 32 bits are workspace of the two below: where each expert's rows begin, and
// how many come before those of each tile of tokens.
std::int64_t router_workspace(const RouterShape& shape);

void route_backward(const RouterShape& shape, const float* probabilities, const std::int8_t* chosen,
                    const float* weight_gradient, float* logits_gradient, std::int32_t* workspace,
                    Stream stream);
void choose_rows(const RouterShape& shape, const float* probabilities, const std::int8_t* chosen,
                 std::int64_t* token_of_row, float* weights, std::int32_t* workspace,
                 Stream stream);

}  // namespace stepcast::cuda
