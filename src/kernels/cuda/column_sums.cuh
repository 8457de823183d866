// SPDX-License-Identifier: Apache-2.0
// Sums over the rows of a matrix, by blocks that are narrow and many: a block adds up a slice of
// the rows at 256 columns, which its warps share row by row, and sum_slices adds up the slices.
#pragma once

#include <algorithm>

#include "kernels/cuda/column_sum.h"
#include "kernels/cuda/eight.cuh"

namespace stepcast::cuda {

inline constexpr int kSumColumns = kWarp * kEight;
inline constexpr int kSumWarps = 8;
inline constexpr unsigned kSumThreads = kSumWarps * kWarp;

struct SumGrid {
  unsigned across, slices;
};
// Two blocks for each of an H100's 132 multiprocessors where there are rows enough. The sums of a
// slice are written and read in fp32; with 96 rows or more they are at most a twentieth of it.
inline SumGrid sum_grid(std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kBlocks = 2 * 132, kRowsOfSlice = 96;
  const std::int64_t across = (columns + kSumColumns - 1) / kSumColumns;
  const std::int64_t most = std::clamp<std::int64_t>(rows / kRowsOfSlice, 1, kColumnSlices);
  return {static_cast<unsigned>(across),
          static_cast<unsigned>(std::min((kBlocks + across - 1) / across, most))};
}

// The first column of this thread's eight.
__device__ inline std::int64_t sum_column() {
  return static_cast<std::int64_t>(blockIdx.x) * kSumColumns + threadIdx.x % kWarp * kEight;
}

// Calls use(row, load(row)) for the rows of this thread. Four rows are loaded before the first of
// them is used: a compiler may not move loads before what `use` stores.
template <typename Load, typename Use>
__device__ inline void for_sum_rows(std::int64_t rows, const Load& load, const Use& use) {
  constexpr int kAtOnce = 4;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * kSumWarps;
  std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * kSumWarps + threadIdx.x / kWarp;
  for (; row + (kAtOnce - 1) * step < rows; row += kAtOnce * step) {
    decltype(load(row)) loaded[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) loaded[i] = load(row + i * step);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) use(row + i * step, loaded[i]);
  }
  for (; row < rows; row += step) use(row, load(row));
}

// Adds up what the block's warps have, and writes it to the block's slice. All threads come here.
// `columns` of them count, at `of_slices` with `stride` from one slice to the next.
__device__ inline void write_sums(const Eight& own, float* of_slices, std::int64_t stride,
                                  std::int64_t columns) {
  __shared__ float sums[kSumWarps][kEight][kWarp];  // lanes beside each other: no bank conflicts
  const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  __syncthreads();  // what was summed before is read
#pragma unroll
  for (int i = 0; i < kEight; ++i) sums[warp][i][lane] = own.at[i];
  __syncthreads();
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kSumColumns + threadIdx.x;
  if (column >= columns) return;
  float sum = 0;
#pragma unroll
  for (int w = 0; w < kSumWarps; ++w) sum += sums[w][threadIdx.x % kEight][threadIdx.x / kEight];
  of_slices[blockIdx.y * stride + column] = sum;
}

}  // namespace stepcast::cuda
