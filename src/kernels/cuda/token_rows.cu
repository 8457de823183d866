// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/token_rows.h"

#include "core/assert.h"
#include "kernels/cuda/eight.cuh"

namespace stepcast::cuda {
namespace {

constexpr unsigned kThreads = 256;

unsigned blocks_of(std::int64_t count) {
  const std::int64_t blocks = (count + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < 4096 ? blocks : 4096);
}

template <typename Body>
__device__ inline void for_each_of(std::int64_t count, const Body& body) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i < count; i += step) body(i);
}

template <typename T>
__global__ void taken_rows(const T* from, const std::int64_t* index, T* to, std::int64_t rows,
                           std::int64_t width, bool chunks) {
  for_rows(rows, width, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t at = index[row], count = width - column;
    Eight values{};
    if (at >= 0) values = load_eight(from + at * width + column, count, chunks);
    store_eight(values, to + row * width + column, count, chunks);
  });
}

template <typename T>
__global__ void rows_put(const T* from, const std::int64_t* index, T* to, std::int64_t rows,
                         std::int64_t width, bool chunks) {
  for_rows(rows, width, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t at = index[row], count = width - column;
    const Eight values = load_eight(from + row * width + column, count, chunks);
    store_eight(values, to + at * width + column, count, chunks);
  });
}

template <typename T>
__global__ void columns_copied(const T* from, std::int64_t from_stride, T* to,
                               std::int64_t to_stride, std::int64_t rows, std::int64_t columns,
                               bool chunks) {
  for_rows(rows, columns, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t count = columns - column;
    const Eight values = load_eight(from + row * from_stride + column, count, chunks);
    store_eight(values, to + row * to_stride + column, count, chunks);
  });
}

// The rows of each target as a list: its first row, and behind each row the next; -1 ends it. They
// come in any order.
__global__ void link_rows(const std::int64_t* index, std::int64_t rows, std::int32_t* first,
                          std::int32_t* next) {
  for_each_of(rows, [&](std::int64_t row) {
    const std::int64_t target = index[row];
    if (target < 0) return;
    next[row] = atomicExch(first + target, static_cast<std::int32_t>(row));
  });
}

// Sorts each list by insertion: a token has a row for each of its few experts.
__global__ void order_rows(std::int64_t targets, std::int32_t* first, std::int32_t* next) {
  for_each_of(targets, [&](std::int64_t target) {
    std::int32_t sorted = -1;
    for (std::int32_t row = first[target]; row >= 0;) {
      const std::int32_t later = next[row];
      if (sorted < 0 || row < sorted) {
        next[row] = sorted;
        sorted = row;
      } else {
        std::int32_t at = sorted;
        while (next[at] >= 0 && next[at] < row) at = next[at];
        next[row] = next[at];
        next[at] = row;
      }
      row = later;
    }
    first[target] = sorted;
  });
}

template <typename T>
__global__ void rows_spread(const T* from, const std::int32_t* first, const std::int32_t* next,
                            T* to, std::int64_t sources, std::int64_t width, bool chunks) {
  for_rows(sources, width, [&](std::int64_t source, std::int64_t column) {
    const std::int64_t count = width - column;
    const Eight values = load_eight(from + source * width + column, count, chunks);
    for (std::int32_t row = first[source]; row >= 0; row = next[row]) {
      store_eight(values, to + row * width + column, count, chunks);
    }
  });
}

template <typename T>
__global__ void rows_of_none(const std::int64_t* index, T* to, std::int64_t rows,
                             std::int64_t width, bool chunks) {
  for_rows(rows, width, [&](std::int64_t row, std::int64_t column) {
    if (index[row] < 0) store_eight(Eight{}, to + row * width + column, width - column, chunks);
  });
}

template <typename T>
__global__ void rows_added(const T* from, const std::int32_t* first, const std::int32_t* next,
                           T* to, std::int64_t targets, std::int64_t width, bool chunks) {
  for_rows(targets, width, [&](std::int64_t target, std::int64_t column) {
    const std::int64_t count = width - column;
    Eight sum{};
    for (std::int32_t row = first[target]; row >= 0; row = next[row]) {
      add_to(sum, load_eight(from + row * width + column, count, chunks));
    }
    store_eight(sum, to + target * width + column, count, chunks);
  });
}

// Lists of the rows of each target, in the workspace: the first ones, then the next ones.
void make_lists(const std::int64_t* index, std::int64_t rows, std::int64_t targets,
                std::int32_t* workspace, Stream stream) {
  STEPCAST_ASSERT(rows < (std::int64_t{1} << 31), "rows are counted in 32 bits");
  check(cudaMemsetAsync(workspace, 0xff, static_cast<std::size_t>(targets) * sizeof(std::int32_t),
                        static_cast<cudaStream_t>(stream)),
        "cudaMemsetAsync");
  if (rows == 0) return;
  launch("link_rows", link_rows, dim3(blocks_of(rows)), kThreads, 0, stream, index, rows, workspace,
         workspace + targets);
}

}  // namespace

template <typename T>
void take_rows(const T* from, const std::int64_t* index, T* to, std::int64_t rows,
               std::int64_t width, Stream stream) {
  if (rows == 0 || width == 0) return;
  const RowGrid grid = row_grid(rows, width);
  launch("take_rows", taken_rows<T>, dim3(grid.across, grid.down), grid.threads, 0, stream, from,
         index, to, rows, width, in_chunks(width, from, to));
}

template <typename T>
void spread_rows(const T* from, const std::int64_t* index, T* to, std::int64_t rows,
                 std::int64_t sources, std::int64_t width, std::int32_t* workspace, Stream stream) {
  if (rows == 0 || width == 0) return;
  make_lists(index, rows, sources, workspace, stream);
  const bool chunks = in_chunks(width, from, to);
  const RowGrid of_rows = row_grid(rows, width), of_sources = row_grid(sources, width);
  launch("rows_of_none", rows_of_none<T>, dim3(of_rows.across, of_rows.down), of_rows.threads, 0,
         stream, index, to, rows, width, chunks);
  if (sources == 0) return;
  launch("spread_rows", rows_spread<T>, dim3(of_sources.across, of_sources.down),
         of_sources.threads, 0, stream, from, workspace, workspace + sources, to, sources, width,
         chunks);
}

template <typename T>
void put_rows(const T* from, const std::int64_t* index, T* to, std::int64_t rows,
              std::int64_t width, Stream stream) {
  if (rows == 0 || width == 0) return;
  const RowGrid grid = row_grid(rows, width);
  launch("put_rows", rows_put<T>, dim3(grid.across, grid.down), grid.threads, 0, stream, from,
         index, to, rows, width, in_chunks(width, from, to));
}

template <typename T>
void add_rows(const T* from, const std::int64_t* index, T* to, std::int64_t rows,
              std::int64_t targets, std::int64_t width, std::int32_t* workspace, Stream stream) {
  if (targets == 0 || width == 0) return;
  std::int32_t* const next = workspace + targets;
  make_lists(index, rows, targets, workspace, stream);
  if (rows > 0) {
    launch("order_rows", order_rows, dim3(blocks_of(targets)), kThreads, 0, stream, targets,
           workspace, next);
  }
  const RowGrid grid = row_grid(targets, width);
  launch("add_rows", rows_added<T>, dim3(grid.across, grid.down), grid.threads, 0, stream, from,
         workspace, next, to, targets, width, in_chunks(width, from, to));
}

template <typename T>
void copy_columns(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
                  std::int64_t rows, std::int64_t columns, Stream stream) {
  if (rows == 0 || columns == 0) return;
  const RowGrid grid = row_grid(rows, columns);
  const bool chunks = in_chunks(from_stride, from, to) && to_stride % kEight == 0;
  launch("copy_columns", columns_copied<T>, dim3(grid.across, grid.down), grid.threads, 0, stream,
         from, from_stride, to, to_stride, rows, columns, chunks);
}

#define STEPCAST_INSTANTIATE(T)                                                                    \
  template void take_rows(const T*, const std::int64_t*, T*, std::int64_t, std::int64_t, Stream);  \
  template void spread_rows(const T*, const std::int64_t*, T*, std::int64_t, std::int64_t,         \
                            std::int64_t, std::int32_t*, Stream);                                  \
  template void put_rows(const T*, const std::int64_t*, T*, std::int64_t, std::int64_t, Stream);   \
  template void add_rows(const T*, const std::int64_t*, T*, std::int64_t, std::int64_t,            \
                         std::int64_t, std::int32_t*, Stream);                                     \
  template void copy_columns(const T*, std::int64_t, T*, std::int64_t, std::int64_t, std::int64_t, \
                             Stream);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)

}  // namespace stepcast::cuda
