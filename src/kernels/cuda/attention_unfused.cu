// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention_unfused.h"

#include "core/assert.h"
#include "kernels/cuda/eight.cuh"
#include "kernels/cuda/reduce.cuh"

namespace stepcast::cuda {
namespace {

// Calls body(row, number of keys that the query of the row sees) for the rows of this block.
template <typename Body>
__device__ inline void for_score_rows(const AttentionShape& shape, const Body& body) {
  const std::int64_t rows = shape.batch * shape.heads * shape.sequence;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    body(row, shape.causal ? row % shape.sequence + 1 : shape.sequence);
  }
}
// A thread meets the same columns three times, and writes them last: in place is fine.
template <typename T>
__global__ void softmax_rows(AttentionShape shape, const T* scores, T* probabilities, float scale,
                             bool chunks) {
  __shared__ float scratch[kWarp];
  for_score_rows(shape, [&](std::int64_t row, std::int64_t seen) {
    const T* in = scores + row * shape.sequence;
    float largest = -INFINITY, sum = 0;
    for_columns(seen, [&](std::int64_t i) {
      const Eight values = load_eight(in + i, seen - i, chunks, -INFINITY);
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) largest = Larger()(values.at[lane], largest);
    });
    largest = reduce_block<Larger>(largest, -INFINITY, scratch);
    for_columns(seen, [&](std::int64_t i) {
      const Eight values = load_eight(in + i, seen - i, chunks, -INFINITY);
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) sum += expf((values.at[lane] - largest) * scale);
    });
    const float inverse = 1 / reduce_block<Plus>(sum, 0.0F, scratch);
    for_columns(shape.sequence, [&](std::int64_t i) {
      Eight values = load_eight(in + i, seen - i, chunks, -INFINITY);
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) {
        values.at[lane] = expf((values.at[lane] - largest) * scale) * inverse;
      }
      store_eight(values, probabilities + row * shape.sequence + i, shape.sequence - i, chunks);
    });
  });
}

template <typename T>
__global__ void softmax_rows_backward(AttentionShape shape, const T* probabilities,
                                      const T* gradient, T* scores_gradient, float scale,
                                      bool chunks) {
  __shared__ float scratch[kWarp];
  for_score_rows(shape, [&](std::int64_t row, std::int64_t seen) {
    const std::int64_t start = row * shape.sequence;
    float products = 0;
    for_columns(seen, [&](std::int64_t i) {
      const Eight p = load_eight(probabilities + start + i, seen - i, chunks);
      const Eight dp = load_eight(gradient + start + i, seen - i, chunks);
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) products += p.at[lane] * dp.at[lane];
    });
    const float mean = reduce_block<Plus>(products, 0.0F, scratch);
    for_columns(shape.sequence, [&](std::int64_t i) {
      const Eight p = load_eight(probabilities + start + i, seen - i, chunks);
      Eight out = load_eight(gradient + start + i, seen - i, chunks);
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) {
        out.at[lane] = p.at[lane] * (out.at[lane] - mean) * scale;
      }
      store_eight(out, scores_gradient + start + i, shape.sequence - i, chunks);
    });
  });
}

// by_head has heads*group heads; a head of `to` is the sum of `group` of them.
template <typename T>
__global__ void sum_groups(AttentionShape shape, std::int64_t heads, std::int64_t group,
                           const T* by_head, Heads<T> to, bool chunks) {
  const std::int64_t s = shape.sequence, d = shape.head_dim;
  for_rows(shape.batch * heads * s, d, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t head = row / s, position = row % s;
    const std::int64_t token = head / heads * s + position;
    Eight sum{};
    for (std::int64_t member = 0; member < group; ++member) {
      const T* from = by_head + ((head * group + member) * s + position) * d + column;
      const Eight more = load_eight(from, d - column, chunks);
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) sum.at[lane] += more.at[lane];
    }
    store_eight(sum, to.data + token * to.stride + head % heads * d + column, d - column, chunks);
  });
}

template <typename T>
__global__ void split_heads(AttentionShape shape, Heads<const T> from, T* by_head, bool chunks) {
  const std::int64_t s = shape.sequence, d = shape.head_dim;
  for_rows(shape.batch * shape.heads * s, d, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t head = row / s, token = head / shape.heads * s + row % s;
    const T* at = from.data + token * from.stride + head % shape.heads * d + column;
    store_eight(load_eight(at, d - column, chunks), by_head + row * d + column, d - column, chunks);
  });
}

template <typename T>
void launch_sum_groups(const AttentionShape& shape, std::int64_t heads, std::int64_t group,
                       const T* by_head, Heads<T> to, Stream stream) {
  const RowGrid grid = row_grid(shape.batch * heads * shape.sequence, shape.head_dim);
  if (grid.down == 0 || grid.across == 0) return;
  launch("gather_heads", sum_groups<T>, dim3(grid.across, grid.down), grid.threads, 0, stream,
         shape, heads, group, by_head, to,
         in_chunks(shape.head_dim, by_head, to.data) && to.stride % kEight == 0);
}

unsigned score_blocks(const AttentionShape& shape) {
  const std::int64_t rows = shape.batch * shape.heads * shape.sequence;
  return static_cast<unsigned>(rows < 65536 ? rows : 65536);
}
}  // namespace

template <typename T>
void masked_softmax(const AttentionShape& shape, const T* scores, T* probabilities, Stream stream) {
  if (score_blocks(shape) == 0) return;
  launch("masked_softmax", softmax_rows<T>, dim3(score_blocks(shape)),
         row_grid(1, shape.sequence).threads, 0, stream, shape, scores, probabilities,
         score_scale<float>(shape), in_chunks(shape.sequence, scores, probabilities));
}

template <typename T>
void masked_softmax_backward(const AttentionShape& shape, const T* probabilities,
                             const T* probabilities_gradient, T* scores_gradient, Stream stream) {
  if (score_blocks(shape) == 0) return;
  launch("masked_softmax_backward", softmax_rows_backward<T>, dim3(score_blocks(shape)),
         row_grid(1, shape.sequence).threads, 0, stream, shape, probabilities,
         probabilities_gradient, scores_gradient, score_scale<float>(shape),
         in_chunks(shape.sequence, probabilities, probabilities_gradient, scores_gradient));
}

template <typename T>
void context_transpose(const AttentionShape& shape, const T* by_head, Heads<T> context,
                       Stream stream) {
  launch_sum_groups(shape, shape.heads, 1, by_head, context, stream);
}

template <typename T>
void context_transpose_backward(const AttentionShape& shape, Heads<const T> context_gradient,
                                T* by_head, Stream stream) {
  const RowGrid grid = row_grid(shape.batch * shape.heads * shape.sequence, shape.head_dim);
  if (grid.down == 0 || grid.across == 0) return;
  launch("context_transpose_backward", split_heads<T>, dim3(grid.across, grid.down), grid.threads,
         0, stream, shape, context_gradient, by_head,
         in_chunks(shape.head_dim, by_head, context_gradient.data) &&
             context_gradient.stride % kEight == 0);
}

template <typename T>
void gather_qkv_gradient(const AttentionShape& shape, const T* query_gradient,
                         const T* key_gradient, const T* value_gradient, Heads<T> query,
                         Heads<T> key, Heads<T> value, Stream stream) {
  STEPCAST_ASSERT(shape.heads % shape.kv_heads == 0, "groups of as many query heads each");
  const std::int64_t group = shape.heads / shape.kv_heads;
  launch_sum_groups(shape, shape.heads, 1, query_gradient, query, stream);
  launch_sum_groups(shape, shape.kv_heads, group, key_gradient, key, stream);
  launch_sum_groups(shape, shape.kv_heads, group, value_gradient, value, stream);
}

#define STEPCAST_INSTANTIATE(T)                                                                    \
  template void masked_softmax(const AttentionShape&, const T*, T*, Stream);                       \
  template void masked_softmax_backward(const AttentionShape&, const T*, const T*, T*, Stream);    \
  template void context_transpose(const AttentionShape&, const T*, Heads<T>, Stream);              \
  template void context_transpose_backward(const AttentionShape&, Heads<const T>, T*, Stream);     \
  template void gather_qkv_gradient(const AttentionShape&, const T*, const T*, const T*, Heads<T>, \
                                    Heads<T>, Heads<T>, Stream);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)

}  // namespace stepcast::cuda
