// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/fp8.h"

#include "core/assert.h"
#include "kernels/cuda/eight.cuh"
#include "kernels/cuda/fp8.cuh"
#include "kernels/cuda/reduce.cuh"

namespace stepcast::cuda {
namespace {

constexpr int kThreads = 256;
// A block casts a tile of as many rows as columns, whose transpose goes through shared memory.
constexpr int kTile = 64;
constexpr int kTileThreads = kTile / kEight * kTile / 2;

template <typename T>
__global__ void largest_of_blocks(const T* x, std::int64_t count, float* of_blocks, bool chunks) {
  __shared__ float scratch[kWarp];
  float most = 0;
  for_eights(count, [&](std::int64_t start) {
    const Eight values = load_eight(x + start, count - start, chunks);
#pragma unroll
    for (int i = 0; i < kEight; ++i) most = Larger()(fabsf(values.at[i]), most);
  });
  most = reduce_block<Larger>(most, 0.0F, scratch);
  if (threadIdx.x == 0) of_blocks[blockIdx.x] = most;
}

__global__ void largest_of_all(const float* of_blocks, int blocks, float* largest, bool joins) {
  __shared__ float scratch[kWarp];
  float most = joins ? *largest : 0.0F;
  for (int i = static_cast<int>(threadIdx.x); i < blocks; i += static_cast<int>(blockDim.x)) {
    most = Larger()(of_blocks[i], most);
  }
  most = reduce_block<Larger>(most, 0.0F, scratch);
  if (threadIdx.x == 0) *largest = most;
}

// Eight bytes in one access, where they are aligned.
__device__ inline void store_fp8(const std::uint8_t (&values)[kEight], Fp8* to, std::int64_t count,
                                 bool aligned) {
  if (aligned && count >= kEight) {
    std::uint64_t all = 0;
#pragma unroll
    for (int i = 0; i < kEight; ++i) all |= static_cast<std::uint64_t>(values[i]) << (8 * i);
    *reinterpret_cast<std::uint64_t*>(to) = all;
    return;
  }
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    if (i < count) to[i] = {values[i]};
  }
}

// Eight neighbours as they are to be stored.
template <Fp8Format format, typename T>
struct Caster {
  const T* x;
  float scale;
  bool chunks;

  __device__ void load(std::int64_t at, std::int64_t count, std::uint8_t (&values)[kEight]) const {
    const Eight wide = load_eight(x + at, count, chunks);
#pragma unroll
    for (int i = 0; i < kEight; ++i) values[i] = to_fp8<format>(wide.at[i] * scale);
  }
};
struct Mover {
  const Fp8* x;

  __device__ void load(std::int64_t at, std::int64_t count, std::uint8_t (&values)[kEight]) const {
#pragma unroll
    for (int i = 0; i < kEight; ++i) values[i] = i < count ? x[at + i].bits : std::uint8_t{0};
  }
};

template <typename From>
__device__ inline void move_tile(const From& from, std::int64_t rows, std::int64_t columns,
                                 Fp8* by_rows, Fp8* by_columns, bool row_chunks,
                                 bool column_chunks) {
  constexpr int kAcross = kTile / kEight;
  auto* tile = shared_memory();  // [column][row] of the tile
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.y) * kTile;
  const std::int64_t first_column = static_cast<std::int64_t>(blockIdx.x) * kTile;
  for (int item = static_cast<int>(threadIdx.x); item < kAcross * kTile; item += kTileThreads) {
    const int row_of_tile = item / kAcross, column_of_tile = item % kAcross * kEight;
    const std::int64_t row = first_row + row_of_tile, column = first_column + column_of_tile;
    const std::int64_t count = row < rows ? columns - column : 0;
    std::uint8_t values[kEight];
    from.load(row * columns + column, count, values);
#pragma unroll
    for (int i = 0; i < kEight; ++i) tile[(column_of_tile + i) * kTile + row_of_tile] = values[i];
    if (by_rows != nullptr) {
      store_fp8(values, by_rows + row * columns + column, count, row_chunks);
    }
  }
  if (by_columns == nullptr) return;
  __syncthreads();
  for (int item = static_cast<int>(threadIdx.x); item < kAcross * kTile; item += kTileThreads) {
    const int column_of_tile = item / kAcross, row_of_tile = item % kAcross * kEight;
    const std::int64_t row = first_row + row_of_tile, column = first_column + column_of_tile;
    const std::int64_t count = column < columns ? rows - row : 0;
    std::uint8_t values[kEight];
#pragma unroll
    for (int i = 0; i < kEight; ++i) values[i] = tile[column_of_tile * kTile + row_of_tile + i];
    store_fp8(values, by_columns + column * rows + row, count, column_chunks);
  }
}

template <Fp8Format format, typename T>
__global__ void tiles_cast(const T* x, const float* largest, float* factor, std::int64_t rows,
                           std::int64_t columns, Fp8* by_rows, Fp8* by_columns, bool chunks,
                           bool row_chunks, bool column_chunks) {
  const int exponent = largest == nullptr ? 0 : scale_exponent<format>(*largest);
  if (factor != nullptr && blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) {
    *factor = power_of_two(-exponent);
  }
  move_tile(Caster<format, T>{x, power_of_two(exponent), chunks}, rows, columns, by_rows,
            by_columns, row_chunks, column_chunks);
}

__global__ void tiles_transpose(const Fp8* x, std::int64_t rows, std::int64_t columns, Fp8* to,
                                bool column_chunks) {
  move_tile(Mover{x}, rows, columns, nullptr, to, false, column_chunks);
}

dim3 tiles_of(std::int64_t rows, std::int64_t columns) {
  const auto tiles = [](std::int64_t count) {
    return static_cast<unsigned>((count + kTile - 1) / kTile);
  };
  STEPCAST_ASSERT(rows <= std::int64_t{65535} * kTile, "blocks lie 65,535 deep at most");
  return dim3(tiles(columns), tiles(rows));
}

bool in_eights(std::int64_t stride, const Fp8* data) {
  return stride % kEight == 0 && reinterpret_cast<std::uintptr_t>(data) % kEight == 0;
}

}  // namespace

template <typename T>
void find_largest(const T* x, std::int64_t count, float* workspace, float* largest, bool joins,
                  Stream stream) {
  const unsigned wanted = flat_blocks(count);
  const unsigned blocks = wanted < kLargestBlocks ? wanted : kLargestBlocks;
  if (blocks > 0) {
    launch("find_largest", largest_of_blocks<T>, dim3(blocks), kThreads, 0, stream, x, count,
           workspace, in_chunks(0, x));
  }
  launch("find_largest", largest_of_all, dim3(1), kThreads, 0, stream, workspace,
         static_cast<int>(blocks), largest, joins);
}

template <typename T>
void cast_to_fp8(Fp8Format format, const T* x, const float* largest, float* factor,
                 std::int64_t rows, std::int64_t columns, Fp8* by_rows, Fp8* by_columns,
                 Stream stream) {
  if (rows == 0 || columns == 0) return;
  const auto run = [&](auto kernel) {
    launch("cast_to_fp8", kernel, tiles_of(rows, columns), kTileThreads, kTile * kTile, stream, x,
           largest, factor, rows, columns, by_rows, by_columns, in_chunks(columns, x),
           in_eights(columns, by_rows), in_eights(rows, by_columns));
  };
  if (format == Fp8Format::kE4m3) {
    run(tiles_cast<Fp8Format::kE4m3, T>);
  } else {
    run(tiles_cast<Fp8Format::kE5m2, T>);
  }
}

void transpose_fp8(const Fp8* from, Fp8* to, std::int64_t rows, std::int64_t columns,
                   Stream stream) {
  if (rows == 0 || columns == 0) return;
  launch("transpose_fp8", tiles_transpose, tiles_of(rows, columns), kTileThreads, kTile * kTile,
         stream, from, rows, columns, to, in_eights(rows, to));
}

#define STEPCAST_INSTANTIATE(T)                                                                    \
  template void find_largest(const T*, std::int64_t, float*, float*, bool, Stream);                \
  template void cast_to_fp8(Fp8Format, const T*, const float*, float*, std::int64_t, std::int64_t, \
                            Fp8*, Fp8*, Stream);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)

}  // namespace stepcast::cuda
