// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/bias.h"

#include "kernels/cuda/eight.cuh"

namespace stepcast::cuda {
namespace {

template <typename T>
__global__ void add_bias_rows(T* data, const T* bias, std::int64_t rows, std::int64_t columns,
                              bool chunks) {
  for_rows(rows, columns, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t count = columns - column;
    Eight sum = load_eight(data + row * columns + column, count, chunks);
    const Eight more = load_eight(bias + column, count, chunks);
#pragma unroll
    for (int i = 0; i < kEight; ++i) sum.at[i] += more.at[i];
    store_eight(sum, data + row * columns + column, count, chunks);
  });
}

// Blocks in y are the slices.
template <typename T>
__global__ void sum_rows(const T* data, float* of_slices, std::int64_t rows, std::int64_t columns,
                         bool chunks) {
  Eight sum{};
  for_rows(rows, columns, [&](std::int64_t row, std::int64_t column) {
    const Eight values = load_eight(data + row * columns + column, columns - column, chunks);
#pragma unroll
    for (int i = 0; i < kEight; ++i) sum.at[i] += values.at[i];
  });
  for_rows(gridDim.y, columns, [&](std::int64_t slice, std::int64_t column) {
    store_eight(sum, of_slices + slice * columns + column, columns - column, chunks);
  });
}

template <typename T>
__global__ void sum_of_slices(const float* of_slices, std::int64_t slices, std::int64_t stride,
                              T* out, std::int64_t columns, bool accumulate) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  float sum = accumulate ? widen(out[column]) : 0;
  for (std::int64_t slice = 0; slice < slices; ++slice) {
    sum += of_slices[slice * stride + column];
  }
  out[column] = narrow<T>(sum);
}

}  // namespace

template <typename T>
void sum_slices(const float* of_slices, std::int64_t slices, std::int64_t stride, T* out,
                std::int64_t columns, bool accumulate, Stream stream) {
  if (columns == 0) return;
  launch("sum_slices", sum_of_slices<T>, dim3(static_cast<unsigned>((columns + 63) / 64)), 64, 0,
         stream, of_slices, slices, stride, out, columns, accumulate);
}

template <typename T>
void add_bias(T* data, const T* bias, std::int64_t rows, std::int64_t columns, Stream stream) {
  if (rows == 0 || columns == 0) return;
  const RowGrid grid = row_grid(rows, columns);
  launch("add_bias", add_bias_rows<T>, dim3(grid.across, grid.down), grid.threads, 0, stream, data,
         bias, rows, columns, in_chunks(columns, data, bias));
}

template <typename T, typename Gradient>
void bias_gradient(const T* data, Gradient* gradient, std::int64_t rows, std::int64_t columns,
                   bool accumulate, float* workspace, Stream stream) {
  if (columns == 0) return;
  const RowGrid grid = row_grid(rows, columns);
  const unsigned slices = grid.down < kColumnSlices ? grid.down : kColumnSlices;
  if (slices > 0) {
    launch("bias_gradient", sum_rows<T>, dim3(grid.across, slices), grid.threads, 0, stream, data,
           workspace, rows, columns, in_chunks(columns, data, workspace));
  }
  sum_slices(workspace, slices, columns, gradient, columns, accumulate, stream);
}

#define STEPCAST_INSTANTIATE(T)                                                                \
  template void add_bias(T*, const T*, std::int64_t, std::int64_t, Stream);                    \
  template void bias_gradient(const T*, T*, std::int64_t, std::int64_t, bool, float*, Stream); \
  template void sum_slices(const float*, std::int64_t, std::int64_t, T*, std::int64_t, bool,   \
                           Stream);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)
template void bias_gradient(const Bf16*, float*, std::int64_t, std::int64_t, bool, float*, Stream);
template void bias_gradient(const Fp16*, float*, std::int64_t, std::int64_t, bool, float*, Stream);

}  // namespace stepcast::cuda
