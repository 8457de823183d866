// SPDX-License-Identifier: Apache-2.0
// Dao 2023, algorithm 1: a block has a tile of queries of one head and meets one tile of keys and
// values after the other. While it multiplies queries and keys, the values are on their way; while
// it multiplies probabilities and values, the next keys are.
#include "kernels/cuda/attention_tile.cuh"

namespace stepcast::cuda {
namespace {

template <int kHeadDim>
struct ForwardTile {
  static constexpr int kRowTiles = kHeadDim <= 128 ? 2 : 1;
  static constexpr int kQueries = kTileWarps * 16 * kRowTiles;
  static constexpr int kKeys = kHeadDim <= 96 ? 64 : 32;
  static constexpr std::size_t kBytes =
      sizeof(Bf16) * (kQueries + 2 * kKeys) * kTileStride<kHeadDim>;
};

// Scores to -infinity where a key is behind the sequence or, causally, behind the query.
template <int kRowTiles, int kKeys>
__device__ inline void mask_scores(const AttentionShape& shape, std::int64_t query,
                                   std::int64_t key, float (&scores)[kRowTiles][kKeys / 8][4]) {
  if (key + kKeys <= keys_end(shape, query + 1)) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const Visible sees = visible(shape, query, key);
#pragma unroll
  for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const bool seen = sees(16 * m + lane / 4 + i / 2 * 8, 8 * n + lane % 4 * 2 + i % 2);
        if (!seen) scores[m][n][i] = -INFINITY;
      }
    }
  }
}

__device__ inline float largest_of_four_lanes(float value) {
  value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, 1));
  return fmaxf(value, __shfl_xor_sync(kAllLanes, value, 2));
}
__device__ inline float sum_of_four_lanes(float value) {
  value += __shfl_xor_sync(kAllLanes, value, 1);
  return value + __shfl_xor_sync(kAllLanes, value, 2);
}

// Two rows of each 16 x 8 product belong to a lane and its three neighbours.
template <int kRowTiles>
struct RunningSoftmax {
  float largest[kRowTiles][2];
  float sum[kRowTiles][2];  // of this lane's columns
};

// Scores to exponentials relative to the largest of the row so far; what the context holds is
// brought to the new largest one. `scale` is that of a base of 2.
template <int kRowTiles, int kKeys, int kColumns>
__device__ inline void update_softmax(float scale, float (&scores)[kRowTiles][kKeys / 8][4],
                                      RunningSoftmax<kRowTiles>& running,
                                      float (&context)[kRowTiles][kColumns / 8][4]) {
#pragma unroll
  for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float next = running.largest[m][r];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        next = fmaxf(next, fmaxf(scores[m][n][2 * r], scores[m][n][2 * r + 1]));
      }
      next = largest_of_four_lanes(next);
      const float shrink = power_of_two((running.largest[m][r] - next) * scale);
      const float less = next * scale;
      float sum = 0;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = 2 * r; i < 2 * r + 2; ++i) {
          scores[m][n][i] = power_of_two(scores[m][n][i] * scale - less);
          sum += scores[m][n][i];
        }
      }
      running.largest[m][r] = next;
      running.sum[m][r] = running.sum[m][r] * shrink + sum;
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n) {
        context[m][n][2 * r] *= shrink;
        context[m][n][2 * r + 1] *= shrink;
      }
    }
  }
}

template <int kHeadDim, int kRowTiles, typename T>
__device__ inline void write_context(const AttentionForward<T>& call, std::int64_t query,
                                     std::int64_t b, std::int64_t h,
                                     RunningSoftmax<kRowTiles>& running,
                                     float (&context)[kRowTiles][kHeadDim / 8][4], T* own_rows) {
  const AttentionShape& shape = call.shape;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int m = 0; m < kRowTiles; ++m) {
    const std::int64_t first = query + 16 * m;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float sum = sum_of_four_lanes(running.sum[m][r]);
      const std::int64_t row = first + lane / 4 + 8 * r;
      if (lane % 4 == 0 && row < shape.sequence) {
        call.log_sum_exp[(b * shape.heads + h) * shape.sequence + row] =
            running.largest[m][r] * call.scale + logf(sum);
      }
      const float inverse = 1 / sum;
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n) {
        context[m][n][2 * r] *= inverse;
        context[m][n][2 * r + 1] *= inverse;
      }
    }
    write_rows<kHeadDim, kHeadDim>(shape, context[m], own_rows + 16 * m * kTileStride<kHeadDim>,
                                   head_rows(shape, call.context, b, h), first, 0, call.chunks);
  }
}

template <typename T, int kHeadDim>
__global__ void __launch_bounds__(kTileThreads) attend(AttentionForward<T> call) {
  using Tile = ForwardTile<kHeadDim>;
  constexpr int kRowTiles = Tile::kRowTiles, kKeys = Tile::kKeys;
  const AttentionShape& shape = call.shape;
  const std::int64_t h = blockIdx.y, b = blockIdx.z;
  // Causally, the last queries have the most keys: they begin first.
  const std::int64_t first = static_cast<std::int64_t>(gridDim.x - 1 - blockIdx.x) * Tile::kQueries;
  const std::int64_t end = keys_end(shape, first + Tile::kQueries);
  const std::int64_t kv = h / (shape.heads / shape.kv_heads);
  const AttentionShape of_keys = shape_of_keys(shape);
  const auto key = head_rows(of_keys, call.key, b, kv),
             value = head_rows(of_keys, call.value, b, kv);

  T* queries = reinterpret_cast<T*>(shared_memory());
  T* keys = queries + Tile::kQueries * kTileStride<kHeadDim>;
  T* values = keys + kKeys * kTileStride<kHeadDim>;
  const int own = static_cast<int>(threadIdx.x) / kWarp * 16 * kRowTiles;
  T* own_rows = queries + own * kTileStride<kHeadDim>;

  start_tile<Tile::kQueries, kHeadDim>(shape, head_rows(shape, call.query, b, h), first,
                                       call.chunks, queries);
  start_tile<kKeys, kHeadDim>(of_keys, key, 0, call.chunks, keys);
  end_copy_group();
  float context[kRowTiles][kHeadDim / 8][4] = {};
  RunningSoftmax<kRowTiles> running;
#pragma unroll
  for (int m = 0; m < kRowTiles; ++m) {
    running.largest[m][0] = running.largest[m][1] = -INFINITY;
    running.sum[m][0] = running.sum[m][1] = 0;
  }
  for (std::int64_t k = 0; k < end; k += kKeys) {
    wait_for_copies<0>();
    __syncthreads();  // the keys are there, and nobody reads the last values any more
    start_tile<kKeys, kHeadDim>(of_keys, value, k, call.chunks, values);
    end_copy_group();
    float scores[kRowTiles][kKeys / 8][4] = {};
    multiply_rows<kHeadDim, kRowTiles, kKeys>(scores, own_rows, keys);
    mask_scores<kRowTiles, kKeys>(shape, first + own, k, scores);
    update_softmax<kRowTiles, kKeys, kHeadDim>(call.scale * kLog2E, scores, running, context);
    wait_for_copies<0>();
    __syncthreads();  // the values are there, and nobody reads the keys any more
    if (k + kKeys < end) {
      start_tile<kKeys, kHeadDim>(of_keys, key, k + kKeys, call.chunks, keys);
      end_copy_group();
    }
    multiply_columns<kHeadDim, kRowTiles, kKeys, kHeadDim>(context, scores, values);
  }
  write_context<kHeadDim>(call, first + own, b, h, running, context, own_rows);
}

}  // namespace

template <typename T>
void attend_by_tiles(const AttentionForward<T>& call, Stream stream) {
  for_head_dim(call.shape.head_dim, [&](auto head_dim) {
    constexpr int kHeadDim = decltype(head_dim)::kValue;
    using Tile = ForwardTile<kHeadDim>;
    launch("attention", attend<T, kHeadDim>, query_blocks<Tile::kQueries>(call.shape), kTileThreads,
           Tile::kBytes, stream, call);
  });
}

template void attend_by_tiles(const AttentionForward<Bf16>&, Stream);
template void attend_by_tiles(const AttentionForward<Fp16>&, Stream);

}  // namespace stepcast::cuda
