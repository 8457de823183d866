// SPDX-License-Identifier: Apache-2.0
// Both kernels of attention's backward pass share this. One has a tile of keys and meets all
// queries of its group of heads: it writes the gradients of keys and values. The other has a tile
// of queries and meets all keys: it writes the gradient of the queries. Scores are so computed
// twice, seven products in place of five, and nothing is added by atomics: the bits are the same
// every time.
#pragma once

#include "kernels/cuda/attention_tile.cuh"

namespace stepcast::cuda {

// Log of the sum of exponentials, in a base of 2, and product of a query. For queries beyond the
// sequence the sum is infinite, so every probability is zero.
struct QueryStatistics {
  float log_sum, product;
};
template <typename T>
__device__ inline QueryStatistics query_statistics(const AttentionBackward<T>& call, std::int64_t b,
                                                   std::int64_t h, std::int64_t row) {
  if (row >= call.shape.sequence) return {INFINITY, 0};
  const std::int64_t at = (b * call.shape.heads + h) * call.shape.sequence + row;
  return {call.log_sum_exp[at] * kLog2E, call.row_products[at]};
}

// score -> probability; its gradient -> that of the score before it was scaled.
__device__ inline void score_backward(bool is_visible, float scale, const QueryStatistics& query,
                                      float& score, float& gradient) {
  score = is_visible ? power_of_two(score * (scale * kLog2E) - query.log_sum) : 0;
  gradient = score * (gradient - query.product) * scale;
}

}  // namespace stepcast::cuda
