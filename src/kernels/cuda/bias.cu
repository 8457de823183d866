// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/bias.h"

#include "kernels/cuda/column_sums.cuh"

namespace stepcast::cuda {
namespace {

template <typename T>
__global__ void add_bias_rows(T* data, const T* bias, std::int64_t rows, std::int64_t columns,
                              bool chunks) {
  for_rows(rows, columns, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t count = columns - column;
    Eight sum = load_eight(data + row * columns + column, count, chunks);
    add_to(sum, load_eight(bias + column, count, chunks));
    store_eight(sum, data + row * columns + column, count, chunks);
  });
}

// Blocks in y are the slices.
template <typename T>
__global__ void sum_rows(const T* data, float* of_slices, std::int64_t rows, std::int64_t columns,
                         bool chunks) {
  const std::int64_t column = sum_column(), left = columns - column;
  Eight sum{};
  for_sum_rows(
      left > 0 ? rows : 0,
      [&](std::int64_t row) { return load_packed(data + row * columns + column, left, chunks); },
      [&](std::int64_t, const PackedEight<T>& loaded) { add_to(sum, unpacked(loaded)); });
  write_sums(sum, of_slices, columns, columns);
}

// Each warp adds up every sixteenth slice at 32 columns. There are 256 slices at most, so a
// thread's loads are all under way at once.
constexpr int kSliceWarps = 16;
template <typename T>
__global__ void sum_of_slices(const float* of_slices, std::int64_t slices, std::int64_t stride,
                              T* out, std::int64_t columns, bool accumulate) {
  __shared__ float sums[kSliceWarps][kWarp];
  const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kWarp + lane;
  float own = 0;
#pragma unroll 16
  for (std::int64_t slice = column < columns ? warp : slices; slice < slices;
       slice += kSliceWarps) {
    own += of_slices[slice * stride + column];
  }
  sums[warp][lane] = own;
  __syncthreads();
  if (warp > 0 || column >= columns) return;
  float sum = accumulate ? widen(out[column]) : 0;
#pragma unroll
  for (int w = 0; w < kSliceWarps; ++w) sum += sums[w][lane];
  out[column] = narrow<T>(sum);
}

}  // namespace

template <typename T>
void sum_slices(const float* of_slices, std::int64_t slices, std::int64_t stride, T* out,
                std::int64_t columns, bool accumulate, Stream stream) {
  if (columns == 0) return;
  launch("sum_slices", sum_of_slices<T>, dim3(static_cast<unsigned>((columns + kWarp - 1) / kWarp)),
         kSliceWarps * kWarp, 0, stream, of_slices, slices, stride, out, columns, accumulate);
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
  const SumGrid grid = sum_grid(rows, columns);
  if (rows > 0) {
    launch("bias_gradient", sum_rows<T>, dim3(grid.across, grid.slices), kSumThreads, 0, stream,
           data, workspace, rows, columns, in_chunks(columns, data));
  }
  sum_slices(workspace, rows > 0 ? grid.slices : 0, columns, gradient, columns, accumulate, stream);
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
