// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/embedding.h"

#include "kernels/cuda/eight.cuh"
#include "kernels/cuda/reduce.cuh"

namespace stepcast::cuda {
namespace {

__device__ inline bool holds(const TableSlice& slice, std::int64_t token) {
  return token >= slice.first && token < slice.first + slice.rows;
}

template <typename T>
__global__ void embed_rows(TableSlice slice, const std::int64_t* tokens, std::int64_t count,
                           const T* table, T* out, bool chunks) {
  for_rows(count, slice.width, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t token = tokens[row], left = slice.width - column;
    Eight values{};
    if (holds(slice, token)) {
      values = load_eight(table + (token - slice.first) * slice.width + column, left, chunks);
    }
    store_eight(values, out + row * slice.width + column, left, chunks);
  });
}

// Whether tokens[own] occurs nowhere else, as most do where a vocabulary is large. All threads of
// the block come here.
__device__ inline bool is_alone(const std::int64_t* tokens, std::int64_t count, std::int64_t own,
                                int* scratch) {
  const std::int64_t token = tokens[own];
  int others = 0;
#pragma unroll 8
  for (std::int64_t at = threadIdx.x; at < count; at += blockDim.x) {
    others |= static_cast<int>(tokens[at] == token && at != own);
  }
  return reduce_block<Larger>(others, 0, scratch) == 0;
}

template <typename T, typename Gradient>
__device__ inline void add_row(const T* row, Gradient* to, std::int64_t left, bool chunks) {
  if (left <= 0) return;
  Eight sum = load_eight(to, left, chunks);
  add_to(sum, load_eight(row, left, chunks));
  store_eight(sum, to, left, chunks);
}

// A block of the tokens[blockIdx.y] that is the first of its kind adds up all of the kind, at the
// columns of the block. `found`: for each warp, which of 32 tokens are of the kind.
template <typename T, typename Gradient>
__global__ void embed_rows_backward(TableSlice slice, const std::int64_t* tokens,
                                    std::int64_t count, const T* gradient, Gradient* table_gradient,
                                    bool chunks) {
  __shared__ unsigned found[kWarp];
  __shared__ int scratch[kWarp];
  const unsigned warps = blockDim.x / kWarp;
  const std::int64_t column =
      (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kEight;
  const std::int64_t left = slice.width - column;
  for (std::int64_t own = blockIdx.y; own < count; own += gridDim.y) {
    const std::int64_t token = tokens[own];
    if (!holds(slice, token)) continue;
    Gradient* to = table_gradient + (token - slice.first) * slice.width + column;
    if (is_alone(tokens, count, own, scratch)) {
      add_row(gradient + own * slice.width + column, to, left, chunks);
      continue;
    }
    Eight sum{};
    bool first = true;
    for (std::int64_t start = 0; start < count && first; start += blockDim.x) {
      const std::int64_t at = start + threadIdx.x;
      const unsigned same = __ballot_sync(kAllLanes, at < count && tokens[at] == token);
      __syncthreads();
      if (threadIdx.x % kWarp == 0) found[threadIdx.x / kWarp] = same;
      __syncthreads();
      for (unsigned warp = 0; warp < warps && first; ++warp) {
        for (unsigned bits = found[warp]; bits != 0; bits &= bits - 1) {
          const std::int64_t row = start + warp * kWarp + __ffs(static_cast<int>(bits)) - 1;
          first = row >= own;
          if (!first) break;
          if (left <= 0) continue;
          const Eight more = load_eight(gradient + row * slice.width + column, left, chunks);
#pragma unroll
          for (int i = 0; i < kEight; ++i) sum.at[i] += more.at[i];
        }
      }
    }
    if (!first || left <= 0) continue;
    add_to(sum, load_eight(to, left, chunks));
    store_eight(sum, to, left, chunks);
  }
}

template <typename T>
__global__ void add_position_rows(T* x, const T* table, std::int64_t rows, std::int64_t first_row,
                                  std::int64_t sequence, std::int64_t width, bool chunks) {
  for_rows(rows, width, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t position = (first_row + row) % sequence;
    Eight sum = load_eight(x + row * width + column, width - column, chunks);
    const Eight more = load_eight(table + position * width + column, width - column, chunks);
#pragma unroll
    for (int i = 0; i < kEight; ++i) sum.at[i] += more.at[i];
    store_eight(sum, x + row * width + column, width - column, chunks);
  });
}

// The rows of a position are `sequence` apart; `start` counts those of the first sequence.
template <typename T, typename Gradient>
__global__ void add_position_rows_backward(const T* gradient, Gradient* table_gradient,
                                           std::int64_t rows, std::int64_t first_row,
                                           std::int64_t sequence, std::int64_t width, bool chunks) {
  const std::int64_t starts = rows < sequence ? rows : sequence;
  for_rows(starts, width, [&](std::int64_t start, std::int64_t column) {
    Gradient* to = table_gradient + (first_row + start) % sequence * width + column;
    Eight sum = load_eight(to, width - column, chunks);
    for (std::int64_t row = start; row < rows; row += sequence) {
      const Eight more = load_eight(gradient + row * width + column, width - column, chunks);
#pragma unroll
      for (int i = 0; i < kEight; ++i) sum.at[i] += more.at[i];
    }
    store_eight(sum, to, width - column, chunks);
  });
}

}  // namespace

template <typename T>
void embed_tokens(const TableSlice& slice, const std::int64_t* tokens, std::int64_t count,
                  const T* table, T* out, Stream stream) {
  if (count == 0 || slice.width == 0) return;
  const RowGrid grid = row_grid(count, slice.width);
  launch("embed_tokens", embed_rows<T>, dim3(grid.across, grid.down), grid.threads, 0, stream,
         slice, tokens, count, table, out, in_chunks(slice.width, table, out));
}

template <typename T, typename Gradient>
void embed_tokens_backward(const TableSlice& slice, const std::int64_t* tokens, std::int64_t count,
                           const T* gradient, Gradient* table_gradient, Stream stream) {
  if (count == 0 || slice.width == 0) return;
  const RowGrid grid = row_grid(count, slice.width);
  launch("embed_tokens_backward", embed_rows_backward<T, Gradient>, dim3(grid.across, grid.down),
         grid.threads, 0, stream, slice, tokens, count, gradient, table_gradient,
         in_chunks(slice.width, gradient, table_gradient));
}

template <typename T>
void add_positions(T* x, const T* table, std::int64_t rows, std::int64_t first_row,
                   std::int64_t sequence, std::int64_t width, Stream stream) {
  if (rows == 0 || width == 0) return;
  const RowGrid grid = row_grid(rows, width);
  launch("add_positions", add_position_rows<T>, dim3(grid.across, grid.down), grid.threads, 0,
         stream, x, table, rows, first_row, sequence, width, in_chunks(width, x, table));
}

template <typename T, typename Gradient>
void add_positions_backward(const T* gradient, Gradient* table_gradient, std::int64_t rows,
                            std::int64_t first_row, std::int64_t sequence, std::int64_t width,
                            Stream stream) {
  if (rows == 0 || width == 0) return;
  const RowGrid grid = row_grid(rows < sequence ? rows : sequence, width);
  launch("add_positions_backward", add_position_rows_backward<T, Gradient>,
         dim3(grid.across, grid.down), grid.threads, 0, stream, gradient, table_gradient, rows,
         first_row, sequence, width, in_chunks(width, gradient, table_gradient));
}

#define STEPCAST_INSTANTIATE_GRADIENT(T, Gradient)                                          \
  template void embed_tokens_backward(const TableSlice&, const std::int64_t*, std::int64_t, \
                                      const T*, Gradient*, Stream);                         \
  template void add_positions_backward(const T*, Gradient*, std::int64_t, std::int64_t,     \
                                       std::int64_t, std::int64_t, Stream);
#define STEPCAST_INSTANTIATE(T)                                                                  \
  template void embed_tokens(const TableSlice&, const std::int64_t*, std::int64_t, const T*, T*, \
                             Stream);                                                            \
  template void add_positions(T*, const T*, std::int64_t, std::int64_t, std::int64_t,            \
                              std::int64_t, Stream);                                             \
  STEPCAST_INSTANTIATE_GRADIENT(T, T)
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)
STEPCAST_INSTANTIATE_GRADIENT(Bf16, float)
STEPCAST_INSTANTIATE_GRADIENT(Fp16, float)

}  // namespace stepcast::cuda
