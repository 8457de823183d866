// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention_backward.cuh"

namespace stepcast::cuda {
namespace {

// Each warp has 16 keys: its products are transposed, keys by queries, so that probabilities and
// gradients of scores stay in registers. The two gradients of 256 columns do not fit there: two
// blocks have half of them each.
template <int kHeadDim>
struct KeysTile {
  static constexpr int kKeys = kTileWarps * 16;
  static constexpr int kQueries = kHeadDim <= 64 ? 64 : kHeadDim <= 128 ? 32 : 16;
  static constexpr int kParts = kHeadDim <= 128 ? 1 : 2;
  static constexpr int kColumns = kHeadDim / kParts;
  static constexpr int kRows = kTileStride<kHeadDim>;  // elements of a row
  static constexpr std::size_t kBytes =
      sizeof(Bf16) * (2 * kKeys + 4 * kQueries) * kRows + 2 * kQueries * sizeof(QueryStatistics);
};

// A tile of queries, the gradient of their context and their statistics; two of them, so that one
// is on its way while the other is used.
template <typename T, int kHeadDim>
struct QueryStage {
  T* queries;
  T* up;
  QueryStatistics* statistics;
};

template <int kHeadDim, typename T>
__device__ inline void start_queries(const AttentionBackward<T>& call, std::int64_t b,
                                     std::int64_t h, std::int64_t first,
                                     const QueryStage<T, kHeadDim>& stage) {
  constexpr int kQueries = KeysTile<kHeadDim>::kQueries;
  const AttentionShape& shape = call.shape;
  start_tile<kQueries, kHeadDim>(shape, head_rows(shape, call.query, b, h), first, call.chunks,
                                 stage.queries);
  start_tile<kQueries, kHeadDim>(shape, head_rows(shape, call.context_gradient, b, h), first,
                                 call.chunks, stage.up);
  if (threadIdx.x < kQueries) {
    stage.statistics[threadIdx.x] = query_statistics(call, b, h, first + threadIdx.x);
  }
}

template <int kHeadDim, typename T>
__device__ inline void add_queries(const AttentionBackward<T>& call, std::int64_t query,
                                   std::int64_t key, const T* own_keys, const T* own_values,
                                   int column, const QueryStage<T, kHeadDim>& stage,
                                   float (&key_sum)[1][KeysTile<kHeadDim>::kColumns / 8][4],
                                   float (&value_sum)[1][KeysTile<kHeadDim>::kColumns / 8][4]) {
  using Tile = KeysTile<kHeadDim>;
  constexpr int kQueries = Tile::kQueries;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const Visible sees = visible(call.shape, query, key);
  float scores[1][kQueries / 8][4] = {}, gradients[1][kQueries / 8][4] = {};
  multiply_rows<kHeadDim, 1, kQueries>(scores, own_keys, stage.queries);
  multiply_rows<kHeadDim, 1, kQueries>(gradients, own_values, stage.up);
#pragma unroll
  for (int n = 0; n < kQueries / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = 8 * n + lane % 4 * 2 + i % 2;
      score_backward(sees(at, lane / 4 + i / 2 * 8), call.scale, stage.statistics[at],
                     scores[0][n][i], gradients[0][n][i]);
    }
  }
  multiply_columns<kHeadDim, 1, kQueries, Tile::kColumns>(value_sum, scores, stage.up + column);
  multiply_columns<kHeadDim, 1, kQueries, Tile::kColumns>(key_sum, gradients,
                                                          stage.queries + column);
}

template <typename T, int kHeadDim>
__global__ void __launch_bounds__(kTileThreads) keys_backward(AttentionBackward<T> call) {
  using Tile = KeysTile<kHeadDim>;
  constexpr int kQueries = Tile::kQueries;
  const AttentionShape& shape = call.shape;
  const std::int64_t kv = blockIdx.y, b = blockIdx.z, group = shape.heads / shape.kv_heads;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x / Tile::kParts) * Tile::kKeys;
  const int column = static_cast<int>(blockIdx.x) % Tile::kParts * Tile::kColumns;

  T* keys = reinterpret_cast<T*>(shared_memory());
  T* values = keys + Tile::kKeys * Tile::kRows;
  T* stages = values + Tile::kKeys * Tile::kRows;
  auto* statistics = reinterpret_cast<QueryStatistics*>(stages + 4 * kQueries * Tile::kRows);
  const auto stage = [&](std::int64_t i) {
    T* at = stages + i % 2 * 2 * kQueries * Tile::kRows;
    return QueryStage<T, kHeadDim>{at, at + kQueries * Tile::kRows, statistics + i % 2 * kQueries};
  };
  const int own = static_cast<int>(threadIdx.x) / kWarp * 16;
  T* own_keys = keys + own * Tile::kRows;
  T* own_values = values + own * Tile::kRows;

  // The tiles of queries of one head of the group, and then of the next.
  const std::int64_t begin = shape.causal ? first / kQueries * kQueries : 0;
  const std::int64_t tiles = (shape.sequence - begin + kQueries - 1) / kQueries;
  const auto head_at = [&](std::int64_t i) { return kv * group + i / tiles; };
  const auto query_at = [&](std::int64_t i) { return begin + i % tiles * kQueries; };

  start_tile<Tile::kKeys, kHeadDim>(shape, head_rows(shape, call.key, b, kv), first, call.chunks,
                                    keys);
  start_tile<Tile::kKeys, kHeadDim>(shape, head_rows(shape, call.value, b, kv), first, call.chunks,
                                    values);
  start_queries<kHeadDim>(call, b, head_at(0), query_at(0), stage(0));
  end_copy_group();
  float key_sum[1][Tile::kColumns / 8][4] = {}, value_sum[1][Tile::kColumns / 8][4] = {};
  for (std::int64_t i = 0; i < group * tiles; ++i) {
    if (i + 1 < group * tiles) {
      start_queries<kHeadDim>(call, b, head_at(i + 1), query_at(i + 1), stage(i + 1));
    }
    end_copy_group();
    wait_for_copies<1>();
    __syncthreads();  // this stage is there
    add_queries<kHeadDim>(call, query_at(i), first + own, own_keys, own_values, column, stage(i),
                          key_sum, value_sum);
    __syncthreads();  // and free again
  }
  write_rows<kHeadDim, Tile::kColumns>(shape, key_sum[0], own_keys,
                                       head_rows(shape, call.key_gradient, b, kv), first + own,
                                       column, call.chunks);
  write_rows<kHeadDim, Tile::kColumns>(shape, value_sum[0], own_values,
                                       head_rows(shape, call.value_gradient, b, kv), first + own,
                                       column, call.chunks);
}

}  // namespace

template <typename T>
void keys_backward_by_tiles(const AttentionBackward<T>& call, Stream stream) {
  for_head_dim(call.shape.head_dim, [&](auto head_dim) {
    constexpr int kHeadDim = decltype(head_dim)::kValue;
    using Tile = KeysTile<kHeadDim>;
    const std::int64_t tiles = (call.shape.sequence + Tile::kKeys - 1) / Tile::kKeys;
    launch(
        "attention_backward", keys_backward<T, kHeadDim>,
        dim3(static_cast<unsigned>(tiles * Tile::kParts),
             static_cast<unsigned>(call.shape.kv_heads), static_cast<unsigned>(call.shape.batch)),
        kTileThreads, Tile::kBytes, stream, call);
  });
}

template void keys_backward_by_tiles(const AttentionBackward<Bf16>&, Stream);
template void keys_backward_by_tiles(const AttentionBackward<Fp16>&, Stream);

}  // namespace stepcast::cuda
