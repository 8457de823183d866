// SPDX-License-Identifier: Apache-2.0
// The kernels of attention are called with these.
#pragma once

#include "kernels/cuda/attention.h"

namespace stepcast::cuda {

template <typename T>
struct AttentionForward {
  AttentionShape shape;
  Heads<const T> query, key, value;
  Heads<T> context;
  float* log_sum_exp;
  float scale;  // 1/sqrt(head_dim)
  bool chunks;  // all heads begin at 16-byte addresses
};

template <typename T>
struct AttentionBackward {
  AttentionShape shape;
  Heads<const T> query, key, value, context_gradient;
  const float* log_sum_exp;
  const float* row_products;  // context . context_gradient of each query and head
  Heads<T> query_gradient, key_gradient, value_gradient;
  float scale;
  bool chunks;
  // Parts of a group's query heads. Where there are several, sums of gradients go to
  // key_sums[part][batch][head][keys, values][token][element] first.
  std::int64_t key_parts;
  float* key_sums;
};

// These run on tensor cores. T is Bf16 or Fp16.
template <typename T>
void attend_by_tiles(const AttentionForward<T>& call, Stream stream);
template <typename T>
void queries_backward_by_tiles(const AttentionBackward<T>& call, Stream stream);
std::int64_t key_parts_by_tiles(const AttentionShape& shape);
template <typename T>
void keys_backward_by_tiles(const AttentionBackward<T>& call, Stream stream);

// These run on CUDA cores.
void attend_by_rows(const AttentionForward<float>& call, Stream stream);
void queries_backward_by_rows(const AttentionBackward<float>& call, Stream stream);
void keys_backward_by_rows(const AttentionBackward<float>& call, Stream stream);

}  // namespace stepcast::cuda
