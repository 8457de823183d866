// SPDX-License-Identifier: Apache-2.0
// Attention in fp32 on CUDA cores: a warp has one query (backward also: one key) and meets the rows
// on the other side by 32, one to a lane; then every lane has some columns of the result. The eight
// warps of a block share these rows in shared memory.
#include "kernels/cuda/attention_call.h"
#include "kernels/cuda/attention_span.cuh"
#include "kernels/cuda/reduce.cuh"

namespace stepcast::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kLaneColumns = static_cast<int>(kLargestHead) / kWarp;

// A row's stride is odd, so that the same column of 32 rows lies in 32 banks.
__device__ inline int row_stride(const AttentionShape& shape) {
  return static_cast<int>(shape.head_dim) | 1;
}

struct Rows {
  const float* data;
  std::int64_t stride;
};
__device__ inline Rows rows_of(const AttentionShape& shape, const Heads<const float>& heads,
                               std::int64_t b, std::int64_t h) {
  return {heads.data + b * shape.sequence * heads.stride + h * shape.head_dim, heads.stride};
}
__device__ inline float* row_of(const AttentionShape& shape, const Heads<float>& heads,
                                std::int64_t b, std::int64_t h, std::int64_t row) {
  return heads.data + (b * shape.sequence + row) * heads.stride + h * shape.head_dim;
}

// 32 rows from `first` on; zeros behind the sequence.
__device__ inline void copy_rows(const AttentionShape& shape, const Rows& from, std::int64_t first,
                                 float* shared) {
  const int d = static_cast<int>(shape.head_dim);
  for (int i = static_cast<int>(threadIdx.x); i < kWarp * d; i += kThreads) {
    const std::int64_t row = first + i / d;
    shared[i / d * row_stride(shape) + i % d] =
        row < shape.sequence ? from.data[row * from.stride + i % d] : 0;
  }
}
// The row of this warp; zeros behind the sequence.
__device__ inline void copy_own(const AttentionShape& shape, const Rows& from, std::int64_t row,
                                float* shared) {
  for (int i = static_cast<int>(threadIdx.x) % kWarp; i < shape.head_dim; i += kWarp) {
    shared[i] = row < shape.sequence ? from.data[row * from.stride + i] : 0;
  }
}

__device__ inline float dot(const AttentionShape& shape, const float* a, const float* b) {
  float sum = 0;
  for (int i = 0; i < shape.head_dim; ++i) sum += a[i] * b[i];
  return sum;
}

struct LaneColumns {
  float at[kLaneColumns];
};
// sum += weight of lane j times row j, at this lane's columns.
__device__ inline void add_weighted(const AttentionShape& shape, float weight, const float* rows,
                                    LaneColumns& sum) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int j = 0; j < kWarp; ++j) {
    const float of_row = __shfl_sync(kAllLanes, weight, j);
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) {
      const int column = lane + c * kWarp;
      if (column < shape.head_dim) sum.at[c] += of_row * rows[j * row_stride(shape) + column];
    }
  }
}
__device__ inline void write_columns(const AttentionShape& shape, const LaneColumns& sum,
                                     float factor, float* to) {
#pragma unroll
  for (int c = 0; c < kLaneColumns; ++c) {
    const int column = static_cast<int>(threadIdx.x) % kWarp + c * kWarp;
    if (column < shape.head_dim) to[column] = sum.at[c] * factor;
  }
}

__device__ inline bool sees(const AttentionShape& shape, std::int64_t query, std::int64_t key) {
  return query < shape.sequence && key < keys_end(shape, query + 1);
}

// Two groups of 32 rows, and two rows of each warp.
struct SharedRows {
  float *first, *second;
  float *own_first, *own_second;
};
__device__ inline SharedRows shared_rows(const AttentionShape& shape) {
  auto* start = reinterpret_cast<float*>(shared_memory());
  const int tile = kWarp * row_stride(shape), warp = static_cast<int>(threadIdx.x) / kWarp;
  float* own = start + 2 * tile + 2 * warp * row_stride(shape);
  return {start, start + tile, own, own + row_stride(shape)};
}
std::size_t shared_bytes(const AttentionShape& shape) {
  const auto stride = static_cast<std::size_t>(shape.head_dim | 1);
  return sizeof(float) * stride * (2 * kWarp + 2 * kWarps);
}

__global__ void __launch_bounds__(kThreads) attend(AttentionForward<float> call) {
  const AttentionShape& shape = call.shape;
  const std::int64_t h = blockIdx.y, b = blockIdx.z, kv = h / (shape.heads / shape.kv_heads);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kWarps;
  const std::int64_t query = first + threadIdx.x / kWarp;
  const SharedRows shared = shared_rows(shape);
  copy_own(shape, rows_of(shape, call.query, b, h), query, shared.own_first);
  const AttentionShape of_keys = shape_of_keys(shape);
  const std::int64_t end = keys_end(shape, first + kWarps);
  float largest = -INFINITY, sum = 0;
  LaneColumns context{};
  for (std::int64_t k = 0; k < end; k += kWarp) {
    __syncthreads();
    copy_rows(of_keys, rows_of(of_keys, call.key, b, kv), k, shared.first);
    copy_rows(of_keys, rows_of(of_keys, call.value, b, kv), k, shared.second);
    __syncthreads();
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    float score = -INFINITY;
    if (sees(shape, query, k + lane)) {
      score = call.scale * dot(shape, shared.own_first, shared.first + lane * row_stride(shape));
    }
    const float next = Larger()(reduce_warp<Larger>(score), largest);
    if (next == -INFINITY) continue;  // behind the sequence; all lanes alike
    const float shrink = expf(largest - next), chance = expf(score - next);
    largest = next;
    sum = sum * shrink + reduce_warp<Plus>(chance);
#pragma unroll
    for (float& value : context.at) value *= shrink;
    add_weighted(shape, chance, shared.second, context);
  }
  if (query >= shape.sequence) return;
  if (threadIdx.x % kWarp == 0) {
    call.log_sum_exp[(b * shape.heads + h) * shape.sequence + query] = largest + logf(sum);
  }
  write_columns(shape, context, 1 / sum, row_of(shape, call.context, b, h, query));
}

// Probability of the key for the query and gradient of the score before it was scaled.
struct Pair {
  float chance, gradient;
};
__device__ inline Pair pair_of(const AttentionBackward<float>& call, std::int64_t b, std::int64_t h,
                               std::int64_t query, std::int64_t key, float score, float product) {
  if (!sees(call.shape, query, key)) return {0, 0};
  const std::int64_t at = (b * call.shape.heads + h) * call.shape.sequence + query;
  const float chance = expf(score * call.scale - call.log_sum_exp[at]);
  return {chance, chance * (product - call.row_products[at]) * call.scale};
}

__global__ void __launch_bounds__(kThreads) queries_backward(AttentionBackward<float> call) {
  const AttentionShape& shape = call.shape;
  const std::int64_t h = blockIdx.y, b = blockIdx.z, kv = h / (shape.heads / shape.kv_heads);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kWarps;
  const std::int64_t query = first + threadIdx.x / kWarp;
  const SharedRows shared = shared_rows(shape);
  copy_own(shape, rows_of(shape, call.query, b, h), query, shared.own_first);
  copy_own(shape, rows_of(shape, call.context_gradient, b, h), query, shared.own_second);
  const AttentionShape of_keys = shape_of_keys(shape);
  const std::int64_t end = keys_end(shape, first + kWarps);
  LaneColumns sum{};
  for (std::int64_t k = 0; k < end; k += kWarp) {
    __syncthreads();
    copy_rows(of_keys, rows_of(of_keys, call.key, b, kv), k, shared.first);
    copy_rows(of_keys, rows_of(of_keys, call.value, b, kv), k, shared.second);
    __syncthreads();
    const int lane = static_cast<int>(threadIdx.x) % kWarp, at = lane * row_stride(shape);
    const Pair pair =
        pair_of(call, b, h, query, k + lane, dot(shape, shared.own_first, shared.first + at),
                dot(shape, shared.own_second, shared.second + at));
    add_weighted(shape, pair.gradient, shared.first, sum);
  }
  if (query >= shape.sequence) return;
  write_columns(shape, sum, 1, row_of(shape, call.query_gradient, b, h, query));
}

__global__ void __launch_bounds__(kThreads) keys_backward(AttentionBackward<float> call) {
  const AttentionShape& shape = call.shape;
  const std::int64_t kv = blockIdx.y, b = blockIdx.z, group = shape.heads / shape.kv_heads;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kWarps;
  const std::int64_t key = first + threadIdx.x / kWarp;
  const SharedRows shared = shared_rows(shape);
  const AttentionShape of_keys = shape_of_keys(shape);
  copy_own(of_keys, rows_of(of_keys, call.key, b, kv), key, shared.own_first);
  copy_own(of_keys, rows_of(of_keys, call.value, b, kv), key, shared.own_second);
  LaneColumns key_sum{}, value_sum{};
  for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
    for (std::int64_t q = seen_from(shape, first); q < shape.sequence; q += kWarp) {
      __syncthreads();
      copy_rows(shape, rows_of(shape, call.query, b, h), q, shared.first);
      copy_rows(shape, rows_of(shape, call.context_gradient, b, h), q, shared.second);
      __syncthreads();
      const int lane = static_cast<int>(threadIdx.x) % kWarp, at = lane * row_stride(shape);
      const Pair pair =
          pair_of(call, b, h, q + lane, key, dot(shape, shared.own_first, shared.first + at),
                  dot(shape, shared.own_second, shared.second + at));
      add_weighted(shape, pair.gradient, shared.first, key_sum);
      add_weighted(shape, pair.chance, shared.second, value_sum);
    }
  }
  if (key >= of_keys.sequence) return;
  write_columns(shape, key_sum, 1, row_of(of_keys, call.key_gradient, b, kv, key));
  write_columns(shape, value_sum, 1, row_of(of_keys, call.value_gradient, b, kv, key));
}

dim3 blocks_for(const AttentionShape& shape, std::int64_t rows, std::int64_t heads) {
  return dim3(static_cast<unsigned>((rows + kWarps - 1) / kWarps), static_cast<unsigned>(heads),
              static_cast<unsigned>(shape.batch));
}
dim3 query_blocks(const AttentionShape& shape) {
  return blocks_for(shape, shape.sequence, shape.heads);
}

}  // namespace

void attend_by_rows(const AttentionForward<float>& call, Stream stream) {
  launch("attention", attend, query_blocks(call.shape), kThreads, shared_bytes(call.shape), stream,
         call);
}

void queries_backward_by_rows(const AttentionBackward<float>& call, Stream stream) {
  launch("attention_backward", queries_backward, query_blocks(call.shape), kThreads,
         shared_bytes(call.shape), stream, call);
}

void keys_backward_by_rows(const AttentionBackward<float>& call, Stream stream) {
  launch("attention_backward", keys_backward,
         blocks_for(call.shape, call.shape.key_rows(), call.shape.kv_heads), kThreads,
         shared_bytes(call.shape), stream, call);
}

}  // namespace stepcast::cuda
