// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cross_entropy.h"

#include <algorithm>

#include "kernels/cuda/eight.cuh"
#include "kernels/cuda/reduce.cuh"

namespace stepcast::cuda {
namespace {

constexpr std::int64_t kMostThreads = 512;
constexpr float kNothing = -INFINITY;  // the largest of no numbers

// A row is read once: a thread that meets a larger logit brings its sum down to it.
template <typename T>
__global__ void row_parts(LogitSlice slice, const T* logits, const std::int64_t* targets,
                          std::int64_t rows, float* largest, float* sum, float* target,
                          bool chunks) {
  __shared__ float scratch[kWarp];
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* of_row = logits + row * slice.columns;
    float own_largest = kNothing, own_sum = 0;
    for_columns(slice.valid, [&](std::int64_t i) {
      const Eight values = load_eight(of_row + i, slice.valid - i, chunks, kNothing);
      float next = own_largest;
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) next = Larger()(values.at[lane], next);
      if (next == kNothing) return;
      own_sum *= expf(own_largest - next);
      own_largest = next;
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) own_sum += expf(values.at[lane] - next);
    });
    const float of_all = reduce_block<Larger>(own_largest, kNothing, scratch);
    own_sum = own_largest == kNothing ? 0 : own_sum * expf(own_largest - of_all);
    own_sum = reduce_block<Plus>(own_sum, 0.0F, scratch);
    if (threadIdx.x == 0) {
      const std::int64_t column = targets[row] - slice.first;
      largest[row] = of_all;
      sum[row] = own_sum;
      target[row] = column >= 0 && column < slice.valid ? widen(of_row[column]) : 0;
    }
  }
}

template <typename T>
__global__ void row_backward(LogitSlice slice, T* logits, const std::int64_t* targets,
                             std::int64_t rows, const float* largest, const float* sum, float scale,
                             bool chunks) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    T* of_row = logits + row * slice.columns;
    const std::int64_t column = targets[row] - slice.first;
    const float factor = scale / sum[row], most = largest[row];
    for_columns(slice.columns, [&](std::int64_t i) {
      Eight values = load_eight(of_row + i, slice.columns - i, chunks);
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) {
        const float chance = expf(values.at[lane] - most) * factor;
        const float gradient = chance - (i + lane == column ? scale : 0);
        values.at[lane] = i + lane < slice.valid ? gradient : 0;
      }
      store_eight(values, of_row + i, slice.columns - i, chunks);
    });
  }
}

// No more than have something to do.
unsigned row_threads(const LogitSlice& slice) {
  constexpr std::int64_t kOfWarp = kWarp * kEight;
  const std::int64_t warps = (slice.columns + kOfWarp - 1) / kOfWarp;
  return static_cast<unsigned>(std::min(warps * kWarp, kMostThreads));
}
unsigned row_blocks(std::int64_t rows) {
  return static_cast<unsigned>(rows < 65536 ? rows : 65536);
}

}  // namespace

template <typename T>
void cross_entropy(const LogitSlice& slice, const T* logits, const std::int64_t* targets,
                   std::int64_t rows, float* largest, float* sum, float* target, Stream stream) {
  if (rows == 0) return;
  launch("cross_entropy", row_parts<T>, dim3(row_blocks(rows)), row_threads(slice), 0, stream,
         slice, logits, targets, rows, largest, sum, target, in_chunks(slice.columns, logits));
}

template <typename T>
void cross_entropy_backward(const LogitSlice& slice, T* logits, const std::int64_t* targets,
                            std::int64_t rows, const float* largest, const float* sum, float scale,
                            Stream stream) {
  if (rows == 0) return;
  launch("cross_entropy_backward", row_backward<T>, dim3(row_blocks(rows)), row_threads(slice), 0,
         stream, slice, logits, targets, rows, largest, sum, scale,
         in_chunks(slice.columns, logits));
}

#define STEPCAST_INSTANTIATE(T)                                                                  \
  template void cross_entropy(const LogitSlice&, const T*, const std::int64_t*, std::int64_t,    \
                              float*, float*, float*, Stream);                                   \
  template void cross_entropy_backward(const LogitSlice&, T*, const std::int64_t*, std::int64_t, \
                                       const float*, const float*, float, Stream);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)

}  // namespace stepcast::cuda
