// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/expert_bias.h"

#include "kernels/cuda/eight.cuh"
#include "kernels/cuda/reduce.cuh"

namespace stepcast::cuda {
namespace {

constexpr unsigned kThreads = 128;

template <typename T>
__global__ void add_weighed(T* data, const T* bias, const float* weights, std::int64_t rows,
                            std::int64_t width, bool chunks) {
  for_rows(rows, width, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t left = width - column;
    const float weight = weights == nullptr ? 1 : weights[row];
    Eight sum = load_eight(data + row * width + column, left, chunks);
    const Eight more = load_eight(bias + column, left, chunks);
#pragma unroll
    for (int i = 0; i < kEight; ++i) sum.at[i] += weight * more.at[i];
    store_eight(sum, data + row * width + column, left, chunks);
  });
}

template <typename T>
__global__ void weigh(const T* data, const float* weights, T* out, std::int64_t rows,
                      std::int64_t width, bool chunks) {
  for_rows(rows, width, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t left = width - column, at = row * width + column;
    Eight values = load_eight(data + at, left, chunks);
    const float weight = weights[row];
#pragma unroll
    for (int i = 0; i < kEight; ++i) values.at[i] *= weight;
    store_eight(values, out + at, left, chunks);
  });
}

// A block for each row.
template <typename T>
__global__ void products_of_rows(const T* data, const T* bias, float* out, std::int64_t rows,
                                 std::int64_t width) {
  __shared__ float scratch[kWarp];
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    float sum = 0;
    for (std::int64_t i = threadIdx.x; i < width; i += kThreads) {
      sum += widen(data[row * width + i]) * widen(bias[i]);
    }
    sum = reduce_block<Plus>(sum, 0.0F, scratch);
    if (threadIdx.x == 0) out[row] = sum;
  }
}

}  // namespace

template <typename T>
void add_weighed_bias(T* data, const T* bias, const float* weights, std::int64_t rows,
                      std::int64_t width, Stream stream) {
  if (rows == 0 || width == 0) return;
  const RowGrid grid = row_grid(rows, width);
  launch("add_weighed_bias", add_weighed<T>, dim3(grid.across, grid.down), grid.threads, 0, stream,
         data, bias, weights, rows, width, in_chunks(width, data, bias));
}

template <typename T>
void weigh_rows(const T* data, const float* weights, T* out, std::int64_t rows, std::int64_t width,
                Stream stream) {
  if (rows == 0 || width == 0) return;
  const RowGrid grid = row_grid(rows, width);
  launch("weigh_rows", weigh<T>, dim3(grid.across, grid.down), grid.threads, 0, stream, data,
         weights, out, rows, width, in_chunks(width, data, out));
}

template <typename T>
void bias_products(const T* data, const T* bias, float* out, std::int64_t rows, std::int64_t width,
                   Stream stream) {
  if (rows == 0) return;
  const auto blocks = static_cast<unsigned>(rows < 65536 ? rows : 65536);
  launch("bias_products", products_of_rows<T>, dim3(blocks), kThreads, 0, stream, data, bias, out,
         rows, width);
}

#define STEPCAST_INSTANTIATE(T)                                                                   \
  template void add_weighed_bias(T*, const T*, const float*, std::int64_t, std::int64_t, Stream); \
  template void weigh_rows(const T*, const float*, T*, std::int64_t, std::int64_t, Stream);       \
  template void bias_products(const T*, const T*, float*, std::int64_t, std::int64_t, Stream);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)

}  // namespace stepcast::cuda
