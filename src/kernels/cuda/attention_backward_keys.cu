// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cuda/attention_backward.cuh"
#include "kernels/cuda/eight.cuh"

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

// The sums of a part's keys begin here, and those of its values follow them.
template <typename T>
__device__ inline float* key_sums(const AttentionBackward<T>& call, std::int64_t part,
                                  std::int64_t b, std::int64_t kv) {
  const AttentionShape& shape = call.shape;
  const std::int64_t head = (part * shape.batch + b) * shape.kv_heads + kv;
  return call.key_sums + head * 2 * keys_of(shape) * shape.head_dim;
}

// 16 rows of a product to rows [first, ...) of a head's sums, which are as many as keys.
template <int kColumns>
__device__ inline void write_sums(const AttentionShape& shape, const float (&from)[kColumns / 8][4],
                                  float* sums, std::int64_t first, int column) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int own = column + lane % 4 * 2, left = static_cast<int>(shape.head_dim) - own;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = first + lane / 4 + half * 8;
    if (row >= keys_of(shape)) continue;
    float* to = sums + row * shape.head_dim + own;
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) {
      if (8 * n < left) to[8 * n] = from[n][2 * half];
      if (8 * n + 1 < left) to[8 * n + 1] = from[n][2 * half + 1];
    }
  }
}

template <typename T>
__global__ void add_parts(AttentionBackward<T> call) {
  const AttentionShape& shape = call.shape;
  const std::int64_t eights = (shape.head_dim + kEight - 1) / kEight;
  const std::int64_t keys = keys_of(shape);
  const std::int64_t of_part = shape.batch * shape.kv_heads * 2 * keys * shape.head_dim;
  const std::int64_t items = shape.batch * shape.kv_heads * 2 * keys * eights;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       item < items; item += step) {
    const std::int64_t at = item % eights * kEight, left = shape.head_dim - at;
    const std::int64_t row = item / eights, token = row % keys;
    const std::int64_t side = row / keys % 2, head = row / keys / 2;
    const std::int64_t kv = head % shape.kv_heads, b = head / shape.kv_heads;
    Eight sum{};
    for (std::int64_t part = 0; part < call.key_parts; ++part) {
      add_to(sum, load_eight(call.key_sums + part * of_part + row * shape.head_dim + at, left,
                             call.chunks));
    }
    const Heads<T>& to = side == 0 ? call.key_gradient : call.value_gradient;
    store_eight(sum, to.data + (b * keys + token) * to.stride + kv * shape.head_dim + at, left,
                call.chunks);
  }
}

// The first one in a part of the query heads that share the keys of head `kv`.
__device__ inline unsigned first_head_of(const AttentionShape& shape, unsigned kv, unsigned part,
                                         unsigned parts) {
  const auto group = static_cast<unsigned>(shape.heads / shape.kv_heads);
  return kv * group + part * group / parts;
}

template <typename T, int kHeadDim, bool kDealt>
__global__ void __launch_bounds__(kTileThreads) keys_backward(AttentionBackward<T> call) {
  using Tile = KeysTile<kHeadDim>;
  constexpr int kQueries = Tile::kQueries;
  const AttentionShape &shape = call.shape, of_keys = shape_of_keys(shape);
  const unsigned parts = kDealt ? static_cast<unsigned>(call.key_parts) : 1;
  const unsigned kv = blockIdx.y, b = blockIdx.z / parts, part = blockIdx.z % parts;
  const unsigned first_head = first_head_of(shape, kv, part, parts);
  const unsigned heads = first_head_of(shape, kv, part + 1, parts) - first_head;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x / Tile::kParts) * Tile::kKeys;
  const int column = static_cast<int>(blockIdx.x) % Tile::kParts * Tile::kColumns;
  T* keys = reinterpret_cast<T*>(shared_memory());
  T* values = keys + Tile::kKeys * Tile::kRows;
  T* stages = values + Tile::kKeys * Tile::kRows;
  auto* statistics = reinterpret_cast<QueryStatistics*>(stages + 4 * kQueries * Tile::kRows);
  const auto stage = [&](unsigned i) {
    T* at = stages + i % 2 * 2 * kQueries * Tile::kRows;
    return QueryStage<T, kHeadDim>{at, at + kQueries * Tile::kRows, statistics + i % 2 * kQueries};
  };
  const int own = static_cast<int>(threadIdx.x) / kWarp * 16;
  T* own_keys = keys + own * Tile::kRows;
  T* own_values = values + own * Tile::kRows;

  // The tiles of queries of one head of the part, and then of the next.
  const std::int64_t begin = seen_from(shape, first) / kQueries * kQueries;
  const auto tiles = static_cast<unsigned>((shape.sequence - begin + kQueries - 1) / kQueries);
  const auto head_at = [&](unsigned i) { return first_head + i / tiles; };
  const auto query_at = [&](unsigned i) { return begin + i % tiles * kQueries; };

  start_tile<Tile::kKeys, kHeadDim>(of_keys, head_rows(of_keys, call.key, b, kv), first,
                                    call.chunks, keys);
  start_tile<Tile::kKeys, kHeadDim>(of_keys, head_rows(of_keys, call.value, b, kv), first,
                                    call.chunks, values);
  start_queries<kHeadDim>(call, b, head_at(0), query_at(0), stage(0));
  end_copy_group();
  float key_sum[1][Tile::kColumns / 8][4] = {}, value_sum[1][Tile::kColumns / 8][4] = {};
  for (unsigned i = 0; i < heads * tiles; ++i) {
    if (i + 1 < heads * tiles) {
      start_queries<kHeadDim>(call, b, head_at(i + 1), query_at(i + 1), stage(i + 1));
    }
    end_copy_group();
    wait_for_copies<1>();
    __syncthreads();  // this stage is there
    add_queries<kHeadDim>(call, query_at(i), first + own, own_keys, own_values, column, stage(i),
                          key_sum, value_sum);
    __syncthreads();  // and free again
  }
  if constexpr (kDealt) {
    float* sums = key_sums(call, part, b, kv);
    write_sums<Tile::kColumns>(shape, key_sum[0], sums, first + own, column);
    write_sums<Tile::kColumns>(shape, value_sum[0], sums + of_keys.sequence * shape.head_dim,
                               first + own, column);
  } else {
    write_rows<kHeadDim, Tile::kColumns>(of_keys, key_sum[0], own_keys,
                                         head_rows(of_keys, call.key_gradient, b, kv), first + own,
                                         column, call.chunks);
    write_rows<kHeadDim, Tile::kColumns>(of_keys, value_sum[0], own_values,
                                         head_rows(of_keys, call.value_gradient, b, kv),
                                         first + own, column, call.chunks);
  }
}

}  // namespace

// Two blocks for each of an H100's 132 multiprocessors at once, and twice as many in all: those of
// the first keys have more to do than those of the last, which few queries see.
std::int64_t key_parts_by_tiles(const AttentionShape& shape) {
  constexpr std::int64_t kBlocks = 4 * 132;
  const std::int64_t keys = kTileWarps * 16, halves = shape.head_dim > 128 ? 2 : 1;
  const std::int64_t blocks =
      (shape.key_rows() + keys - 1) / keys * halves * shape.kv_heads * shape.batch;
  return std::clamp<std::int64_t>((kBlocks + blocks - 1) / blocks, 1, shape.heads / shape.kv_heads);
}

template <typename T>
void keys_backward_by_tiles(const AttentionBackward<T>& call, Stream stream) {
  for_head_dim(call.shape.head_dim, [&](auto head_dim) {
    constexpr int kHeadDim = decltype(head_dim)::kValue;
    using Tile = KeysTile<kHeadDim>;
    const std::int64_t tiles = (call.shape.key_rows() + Tile::kKeys - 1) / Tile::kKeys;
    launch(
        "attention_backward",
        call.key_parts > 1 ? keys_backward<T, kHeadDim, true> : keys_backward<T, kHeadDim, false>,
        dim3(static_cast<unsigned>(tiles * Tile::kParts),
             static_cast<unsigned>(call.shape.kv_heads),
             static_cast<unsigned>(call.shape.batch * call.key_parts)),
        kTileThreads, Tile::kBytes, stream, call);
  });
  if (call.key_parts == 1) return;
  const AttentionShape& shape = call.shape;
  launch("attention_backward", add_parts<T>,
         dim3(flat_blocks(2 * shape.batch * shape.key_rows() * shape.kv_heads * shape.head_dim)),
         kFlatThreads, 0, stream, call);
}

template void keys_backward_by_tiles(const AttentionBackward<Bf16>&, Stream);
template void keys_backward_by_tiles(const AttentionBackward<Fp16>&, Stream);

}  // namespace stepcast::cuda
