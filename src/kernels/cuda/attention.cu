// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention.h"

#include "core/assert.h"
#include "kernels/cuda/attention_call.h"
#include "kernels/cuda/eight.cuh"
#include "kernels/cuda/reduce.cuh"

namespace stepcast::cuda {
namespace {

constexpr unsigned kThreads = 256;

// Computes context . context_gradient for each query and head, with one warp each. It equals the
// sum over the query's keys of probability times gradient of the probability (Dao 2023, section
// 2.3.2).
template <typename T>
__global__ void multiply_contexts(AttentionShape shape, Heads<const T> context,
                                  Heads<const T> gradient, float* products, bool chunks) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * (blockDim.x / kWarp);
  std::int64_t i =
      static_cast<std::int64_t>(blockIdx.x) * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  for (; i < shape.batch * shape.heads * shape.sequence; i += step) {
    const std::int64_t row = i % shape.sequence, h = i / shape.sequence % shape.heads;
    const std::int64_t token = i / shape.sequence / shape.heads * shape.sequence + row;
    const T* a = context.data + token * context.stride + h * shape.head_dim;
    const T* b = gradient.data + token * gradient.stride + h * shape.head_dim;
    float sum = 0;
    for (std::int64_t at = threadIdx.x % kWarp * kEight; at < shape.head_dim;
         at += kWarp * kEight) {
      const Eight left = load_eight(a + at, shape.head_dim - at, chunks);
      const Eight right = load_eight(b + at, shape.head_dim - at, chunks);
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) sum += left.at[lane] * right.at[lane];
    }
    sum = reduce_warp<Plus>(sum);
    if (threadIdx.x % kWarp == 0) products[i] = sum;
  }
}

template <typename T, typename... More>
bool heads_in_chunks(const AttentionShape& shape, const Heads<T>& first, const More&... more) {
  const bool chunks = in_chunks(shape.head_dim, first.data) && first.stride % kEight == 0;
  if constexpr (sizeof...(more) == 0) {
    return chunks;
  } else {
    return chunks && heads_in_chunks(shape, more...);
  }
}

void expect_shape(const AttentionShape& shape) {
  STEPCAST_ASSERT(shape.heads % shape.kv_heads == 0, "groups of as many query heads each");
  STEPCAST_ASSERT(shape.head_dim <= kLargestHead, "heads that fit the kernels' tiles");
  STEPCAST_ASSERT(shape.offset() >= 0, "every query of a causal mask sees a key");
}

}  // namespace

template <typename T>
void attention(const AttentionShape& shape, Heads<const T> query, Heads<const T> key,
               Heads<const T> value, Heads<T> context, float* log_sum_exp, Stream stream) {
  expect_shape(shape);
  if (shape.is_empty()) return;
  const AttentionForward<T> call{shape,
                                 query,
                                 key,
                                 value,
                                 context,
                                 log_sum_exp,
                                 score_scale<float>(shape),
                                 heads_in_chunks(shape, query, key, value, context)};
  if constexpr (sizeof(T) == sizeof(float)) {
    attend_by_rows(call, stream);
  } else {
    attend_by_tiles(call, stream);
  }
}

template <typename T>
std::int64_t attention_key_sums(const AttentionShape& shape) {
  if (sizeof(T) == sizeof(float) || shape.is_empty()) return 0;
  const std::int64_t parts = key_parts_by_tiles(shape);
  if (parts == 1) return 0;
  return 2 * parts * shape.batch * shape.key_rows() * shape.kv_heads * shape.head_dim;
}

template <typename T>
void attention_backward(const AttentionShape& shape, Heads<const T> query, Heads<const T> key,
                        Heads<const T> value, Heads<const T> context, const float* log_sum_exp,
                        Heads<const T> context_gradient, Heads<T> query_gradient,
                        Heads<T> key_gradient, Heads<T> value_gradient, float* row_products,
                        float* key_sums, Stream stream) {
  expect_shape(shape);
  if (shape.is_empty()) return;
  const std::int64_t warps = shape.batch * shape.heads * shape.sequence;
  const std::int64_t blocks = (warps * kWarp + kThreads - 1) / kThreads;
  launch("attention_backward", multiply_contexts<T>,
         dim3(static_cast<unsigned>(blocks < 65536 ? blocks : 65536)), kThreads, 0, stream, shape,
         context, context_gradient, row_products,
         heads_in_chunks(shape, context, context_gradient));
  const bool chunks = heads_in_chunks(shape, query, key, value, context_gradient, query_gradient,
                                      key_gradient, value_gradient);
  const AttentionBackward<T> call{shape,
                                  query,
                                  key,
                                  value,
                                  context_gradient,
                                  log_sum_exp,
                                  row_products,
                                  query_gradient,
                                  key_gradient,
                                  value_gradient,
                                  score_scale<float>(shape),
                                  chunks,
                                  sizeof(T) == sizeof(float) ? 1 : key_parts_by_tiles(shape),
                                  key_sums};
  if constexpr (sizeof(T) == sizeof(float)) {
    keys_backward_by_rows(call, stream);
    queries_backward_by_rows(call, stream);
  } else {
    keys_backward_by_tiles(call, stream);
    queries_backward_by_tiles(call, stream);
  }
}

#define STEPCAST_INSTANTIATE(T)                                                                  \
  template std::int64_t attention_key_sums<T>(const AttentionShape&);                            \
  template void attention(const AttentionShape&, Heads<const T>, Heads<const T>, Heads<const T>, \
                          Heads<T>, float*, Stream);                                             \
  template void attention_backward(const AttentionShape&, Heads<const T>, Heads<const T>,        \
                                   Heads<const T>, Heads<const T>, const float*, Heads<const T>, \
                                   Heads<T>, Heads<T>, Heads<T>, float*, float*, Stream);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)

}  // namespace stepcast::cuda
