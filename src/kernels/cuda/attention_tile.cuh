// SPDX-License-Identifier: Apache-2.0
// Tiles of heads in shared memory and their products. Four warps; each has 16 rows, or several
// times 16, of every product. A tile's rows are padded by 16 bytes, so that eight rows lie in
// different banks (for each of the head dimensions, the stride is an odd multiple of 16 bytes
// modulo 128).
#pragma once

#include "kernels/cuda/attention_call.h"
#include "kernels/cuda/attention_span.cuh"
#include "kernels/cuda/tensor_core.cuh"

namespace stepcast::cuda {

inline constexpr int kTileWarps = 4;
inline constexpr int kTileThreads = kTileWarps * kWarp;
inline constexpr float kLog2E = 1.44269504088896340736F;

template <int kHeadDim>
inline constexpr int kTileStride = kHeadDim + 8;

// A block for every tile of so many queries, head and sequence.
template <int kQueries>
dim3 query_blocks(const AttentionShape& shape) {
  const std::int64_t tiles = (shape.sequence + kQueries - 1) / kQueries;
  return dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(shape.heads),
              static_cast<unsigned>(shape.batch));
}

// One head of one sequence in global memory.
template <typename T>
struct HeadRows {
  T* data;
  std::int64_t stride;
};
template <typename T>
__device__ inline HeadRows<T> head_rows(const AttentionShape& shape, const Heads<T>& heads,
                                        std::int64_t b, std::int64_t h) {
  return {heads.data + b * shape.sequence * heads.stride + h * shape.head_dim, heads.stride};
}

// Which keys of a tile the queries of a tile see: those of the sequence and, causally, those that
// come no later.
struct Visible {
  int keys;   // of the tile that are in the sequence
  int ahead;  // of the first key is the first query
  __device__ bool operator()(int query, int key) const {
    return key < keys && key <= query + ahead;
  }
};
__device__ inline Visible visible(const AttentionShape& shape, std::int64_t query,
                                  std::int64_t key) {
  constexpr int kAll = 1 << 30;
  const std::int64_t keys = keys_of(shape) - key;
  return {keys < kAll ? static_cast<int>(keys) : kAll,
          shape.causal ? static_cast<int>(query + offset_of(shape) - key) : kAll};
}

// Starts to copy rows [first, first + kRows) of a head; zeros behind the sequence and the head.
template <int kRows, int kHeadDim, typename T>
__device__ inline void start_tile(const AttentionShape& shape, const HeadRows<const T>& head,
                                  std::int64_t first, bool chunks, T* tile) {
  constexpr int kChunks = kHeadDim / 8;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kChunks; i += kTileThreads) {
    const int row = i / kChunks, column = i % kChunks * 8;
    const bool in_sequence = first + row < shape.sequence;
    const T* from = head.data + (first + row) * head.stride + column;
    T* to = tile + row * kTileStride<kHeadDim> + column;
    if (chunks) {
      const bool inside = in_sequence && column < shape.head_dim;
      start_copy(to, inside ? from : head.data, !inside);
    } else {
      for (int j = 0; j < 8; ++j) {
        to[j] = in_sequence && column + j < shape.head_dim ? from[j] : T{0};
      }
    }
  }
}

// A lane points ldmatrix here for the 16 x 16 elements at `corner`. Plain: the four 8 x 8 matrices
// are the registers of A, or, transposed, two columns' worth of B. By rows: they are B, read from
// rows that are its columns.
template <int kHeadDim, typename T>
__device__ inline const T* lane_corner(const T* corner) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  return corner + lane % 16 * kTileStride<kHeadDim> + lane / 16 * 8;
}
template <int kHeadDim, typename T>
__device__ inline const T* lane_corner_by_rows(const T* corner) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  return corner + (lane / 16 * 8 + lane % 8) * kTileStride<kHeadDim> + lane / 8 % 2 * 8;
}

// out += a b^T; a: 16*kRowTiles rows, b: kColumns rows, of kHeadDim elements each.
template <int kHeadDim, int kRowTiles, int kColumns, typename T>
__device__ inline void multiply_rows(float (&out)[kRowTiles][kColumns / 8][4], const T* a,
                                     const T* b) {
#pragma unroll
  for (int k = 0; k < kHeadDim; k += 16) {
    std::uint32_t left[kRowTiles][4];
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
      load_matrices(left[m], lane_corner<kHeadDim>(a + 16 * m * kTileStride<kHeadDim> + k));
    }
#pragma unroll
    for (int n = 0; n < kColumns / 16; ++n) {
      std::uint32_t right[4];
      load_matrices(right, lane_corner_by_rows<kHeadDim>(b + 16 * n * kTileStride<kHeadDim> + k));
#pragma unroll
      for (int m = 0; m < kRowTiles; ++m) {
        multiply_add<T>(out[m][2 * n], left[m], right[0], right[1]);
        multiply_add<T>(out[m][2 * n + 1], left[m], right[2], right[3]);
      }
    }
  }
}

// out += p b; p: kRows columns in registers as products leave them, rounded to T; b: kRows rows,
// of which kColumns columns are taken.
template <int kHeadDim, int kRowTiles, int kRows, int kColumns, typename T>
__device__ inline void multiply_columns(float (&out)[kRowTiles][kColumns / 8][4],
                                        const float (&p)[kRowTiles][kRows / 8][4], const T* b) {
#pragma unroll
  for (int k = 0; k < kRows / 16; ++k) {
    std::uint32_t left[kRowTiles][4];
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&pair)[4] = p[m][2 * k + i / 2];
        left[m][i] = narrow_pair<T>(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
      }
    }
#pragma unroll
    for (int n = 0; n < kColumns / 16; ++n) {
      std::uint32_t right[4];
      load_matrices_transposed(right,
                               lane_corner<kHeadDim>(b + 16 * k * kTileStride<kHeadDim> + 16 * n));
#pragma unroll
      for (int m = 0; m < kRowTiles; ++m) {
        multiply_add<T>(out[m][2 * n], left[m], right[0], right[1]);
        multiply_add<T>(out[m][2 * n + 1], left[m], right[2], right[3]);
      }
    }
  }
}

// 16 rows of a product to rows [first, ...) of a head, columns from `column` on, by way of 16 rows
// of a tile that only this warp uses.
template <int kHeadDim, int kColumns, typename T>
__device__ inline void write_rows(const AttentionShape& shape, const float (&from)[kColumns / 8][4],
                                  T* tile, const HeadRows<T>& head, std::int64_t first, int column,
                                  bool chunks) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  __syncwarp();
#pragma unroll
  for (int n = 0; n < kColumns / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + i / 2 * 8;
      tile[row * kTileStride<kHeadDim> + 8 * n + lane % 4 * 2 + i % 2] = narrow<T>(from[n][i]);
    }
  }
  __syncwarp();
  for (int i = lane; i < 16 * kColumns / 8; i += kWarp) {
    const int row = i / (kColumns / 8), at = i % (kColumns / 8) * 8;
    if (first + row >= shape.sequence) continue;
    const T* from_tile = tile + row * kTileStride<kHeadDim> + at;
    T* to = head.data + (first + row) * head.stride + column + at;
    const std::int64_t left = shape.head_dim - column - at;
    if (chunks && left > 0) {
      store_chunk(load_chunk(from_tile), to);
    } else {
      for (int j = 0; j < 8 && j < left; ++j) to[j] = from_tile[j];
    }
  }
}

// Calls body(integral constant) with the smallest head dimension that kernels exist for.
template <int kHeadDim>
struct HeadDim {
  static constexpr int kValue = kHeadDim;
};
template <typename Body>
void for_head_dim(std::int64_t head_dim, const Body& body) {
  if (head_dim <= 64) return body(HeadDim<64>());
  if (head_dim <= 80) return body(HeadDim<80>());
  if (head_dim <= 96) return body(HeadDim<96>());
  if (head_dim <= 128) return body(HeadDim<128>());
  body(HeadDim<256>());
}

}  // namespace stepcast::cuda
