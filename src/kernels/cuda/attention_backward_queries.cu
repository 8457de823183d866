// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention_backward.cuh"

namespace stepcast::cuda {
namespace {

template <int kHeadDim>
struct QueriesTile {
  static constexpr int kQueries = kTileWarps * 16;
  static constexpr int kKeys = kHeadDim <= 96 ? 64 : 32;
  static constexpr int kRows = kTileStride<kHeadDim>;  // elements of a row
  static constexpr std::size_t kBytes = sizeof(Bf16) * (2 * kQueries + 4 * kKeys) * kRows;
};

// A tile of keys and values; two of them, so that one is on its way while the other is used.
template <typename T>
struct KeyStage {
  T* keys;
  T* values;
};

template <int kHeadDim, typename T>
__device__ inline void add_keys(const AttentionBackward<T>& call, std::int64_t query,
                                std::int64_t key, const T* own_queries, const T* own_up,
                                const QueryStatistics (&statistics)[2], const KeyStage<T>& stage,
                                float (&query_sum)[1][kHeadDim / 8][4]) {
  constexpr int kKeys = QueriesTile<kHeadDim>::kKeys;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const Visible sees = visible(call.shape, query, key);
  float scores[1][kKeys / 8][4] = {}, gradients[1][kKeys / 8][4] = {};
  multiply_rows<kHeadDim, 1, kKeys>(scores, own_queries, stage.keys);
  multiply_rows<kHeadDim, 1, kKeys>(gradients, own_up, stage.values);
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = 8 * n + lane % 4 * 2 + i % 2;
      score_backward(sees(lane / 4 + i / 2 * 8, column), call.scale, statistics[i / 2],
                     scores[0][n][i], gradients[0][n][i]);
    }
  }
  multiply_columns<kHeadDim, 1, kKeys, kHeadDim>(query_sum, gradients, stage.keys);
}

template <typename T, int kHeadDim>
__global__ void __launch_bounds__(kTileThreads) queries_backward(AttentionBackward<T> call) {
  using Tile = QueriesTile<kHeadDim>;
  constexpr int kKeys = Tile::kKeys;
  const AttentionShape& shape = call.shape;
  const std::int64_t h = blockIdx.y, b = blockIdx.z;
  const std::int64_t first = static_cast<std::int64_t>(gridDim.x - 1 - blockIdx.x) * Tile::kQueries;
  const std::int64_t end = keys_end(shape, first + Tile::kQueries);
  const std::int64_t kv = h / (shape.heads / shape.kv_heads);
  const AttentionShape of_keys = shape_of_keys(shape);
  const auto key = head_rows(of_keys, call.key, b, kv),
             value = head_rows(of_keys, call.value, b, kv);

  T* queries = reinterpret_cast<T*>(shared_memory());
  T* up = queries + Tile::kQueries * Tile::kRows;
  T* stages = up + Tile::kQueries * Tile::kRows;
  const auto stage = [&](std::int64_t i) {
    T* at = stages + i % 2 * 2 * kKeys * Tile::kRows;
    return KeyStage<T>{at, at + kKeys * Tile::kRows};
  };
  const auto start_keys = [&](std::int64_t i) {
    start_tile<kKeys, kHeadDim>(of_keys, key, i * kKeys, call.chunks, stage(i).keys);
    start_tile<kKeys, kHeadDim>(of_keys, value, i * kKeys, call.chunks, stage(i).values);
  };
  const int own = static_cast<int>(threadIdx.x) / kWarp * 16;
  const std::int64_t row = first + own + static_cast<int>(threadIdx.x) % kWarp / 4;
  const QueryStatistics statistics[2] = {query_statistics(call, b, h, row),
                                         query_statistics(call, b, h, row + 8)};

  start_tile<Tile::kQueries, kHeadDim>(shape, head_rows(shape, call.query, b, h), first,
                                       call.chunks, queries);
  start_tile<Tile::kQueries, kHeadDim>(shape, head_rows(shape, call.context_gradient, b, h), first,
                                       call.chunks, up);
  start_keys(0);
  end_copy_group();
  float query_sum[1][kHeadDim / 8][4] = {};
  const std::int64_t tiles = (end + kKeys - 1) / kKeys;
  for (std::int64_t i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) start_keys(i + 1);
    end_copy_group();
    wait_for_copies<1>();
    __syncthreads();  // this stage is there
    add_keys<kHeadDim>(call, first + own, i * kKeys, queries + own * Tile::kRows,
                       up + own * Tile::kRows, statistics, stage(i), query_sum);
    __syncthreads();  // and free again
  }
  write_rows<kHeadDim, kHeadDim>(shape, query_sum[0], queries + own * Tile::kRows,
                                 head_rows(shape, call.query_gradient, b, h), first + own, 0,
                                 call.chunks);
}

}  // namespace

template <typename T>
void queries_backward_by_tiles(const AttentionBackward<T>& call, Stream stream) {
  for_head_dim(call.shape.head_dim, [&](auto head_dim) {
    constexpr int kHeadDim = decltype(head_dim)::kValue;
    using Tile = QueriesTile<kHeadDim>;
    launch("attention_backward", queries_backward<T, kHeadDim>,
           query_blocks<Tile::kQueries>(call.shape), kTileThreads, Tile::kBytes, stream, call);
  });
}

template void queries_backward_by_tiles(const AttentionBackward<Bf16>&, Stream);
template void queries_backward_by_tiles(const AttentionBackward<Fp16>&, Stream);

}  // namespace stepcast::cuda
