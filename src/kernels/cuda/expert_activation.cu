// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/expert_activation.h"

#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/reduce.cuh"

namespace stepcast::cuda {
namespace {

constexpr std::int64_t kMostThreads = 256;

template <typename T>
__global__ void weighed_gelu(Input<T> in, const float* weights, T* out, std::int64_t rows,
                             std::int64_t width) {
  for_rows(rows, width, [&](std::int64_t row, std::int64_t column) {
    Eight x = with_bias(in, row, column, width, 0);
    const float weight = weights[row];
#pragma unroll
    for (int i = 0; i < kEight; ++i) x.at[i] = gelu(x.at[i]) * weight;
    store_eight(x, out + row * width + column, width - column, in.chunks);
  });
}

template <typename T>
__global__ void weighed_swiglu(Input<T> in, const float* weights, T* out, std::int64_t rows,
                               std::int64_t width) {
  for_rows(rows, width, [&](std::int64_t row, std::int64_t column) {
    Eight gate = with_bias(in, row, column, width, 0);
    const Eight linear = with_bias(in, row, column, width, 1);
    const float weight = weights[row];
#pragma unroll
    for (int i = 0; i < kEight; ++i) gate.at[i] = swiglu(gate.at[i], linear.at[i]) * weight;
    store_eight(gate, out + row * width + column, width - column, in.chunks);
  });
}

// A block for each row, whose sum is the gradient of the row's weight. body(row, column, dy) writes
// eight gradients and returns their part of the sum.
template <typename T, typename Body>
__device__ inline void for_weighed_rows(const Input<T>& in, const T* gradient,
                                        float* weight_gradient, std::int64_t rows,
                                        std::int64_t width, const Body& body) {
  __shared__ float scratch[kWarp];
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    float sum = 0;
    for_columns(width, [&](std::int64_t column) {
      sum +=
          body(row, column, load_eight(gradient + row * width + column, width - column, in.chunks));
    });
    sum = reduce_block<Plus>(sum, 0.0F, scratch);
    if (threadIdx.x == 0) weight_gradient[row] = sum;
  }
}

template <typename T>
__global__ void weighed_gelu_backward(Input<T> in, const float* weights, const T* gradient,
                                      T* up_gradient, float* weight_gradient, std::int64_t rows,
                                      std::int64_t width) {
  for_weighed_rows(in, gradient, weight_gradient, rows, width,
                   [&](std::int64_t row, std::int64_t column, Eight dy) {
                     const Eight x = with_bias(in, row, column, width, 0);
                     const float weight = weights[row];
                     float sum = 0;
#pragma unroll
                     for (int i = 0; i < kEight; ++i) {
                       sum += dy.at[i] * gelu(x.at[i]);
                       dy.at[i] *= weight * gelu_slope(x.at[i]);
                     }
                     store_eight(dy, up_gradient + row * width + column, width - column, in.chunks);
                     return sum;
                   });
}

template <typename T>
__global__ void weighed_swiglu_backward(Input<T> in, const float* weights, const T* gradient,
                                        T* up_gradient, float* weight_gradient, std::int64_t rows,
                                        std::int64_t width) {
  for_weighed_rows(in, gradient, weight_gradient, rows, width,
                   [&](std::int64_t row, std::int64_t column, const Eight& dy) {
                     Eight gate = with_bias(in, row, column, width, 0);
                     Eight linear = with_bias(in, row, column, width, 1);
                     const float weight = weights[row];
                     float sum = 0;
#pragma unroll
                     for (int i = 0; i < kEight; ++i) {
                       const SwigluSlopes slopes = swiglu_slopes(gate.at[i], linear.at[i]);
                       sum += dy.at[i] * slopes.linear * linear.at[i];
                       gate.at[i] = dy.at[i] * weight * slopes.gate;
                       linear.at[i] = dy.at[i] * weight * slopes.linear;
                     }
                     T* to = up_gradient + row * in.stride + column;
                     store_eight(gate, to, width - column, in.chunks);
                     store_eight(linear, to + width, width - column, in.chunks);
                     return sum;
                   });
}

}  // namespace

template <typename T>
void expert_activation(ActivationKind kind, const T* up, const float* weights, T* out,
                       std::int64_t rows, std::int64_t width, Stream stream) {
  if (rows == 0 || width == 0) return;
  const bool gated = kind == ActivationKind::kSwiglu;
  const Input<T> in = input<T>(gated, up, nullptr, nullptr, width, in_chunks(width, out));
  const RowGrid grid = row_grid(rows, width);
  launch("expert_activation", gated ? weighed_swiglu<T> : weighed_gelu<T>,
         dim3(grid.across, grid.down), grid.threads, 0, stream, in, weights, out, rows, width);
}

template <typename T>
void expert_activation_backward(ActivationKind kind, const T* up, const float* weights,
                                const T* gradient, T* up_gradient, float* weight_gradient,
                                std::int64_t rows, std::int64_t width, Stream stream) {
  if (rows == 0 || width == 0) return;
  const bool gated = kind == ActivationKind::kSwiglu;
  const Input<T> in =
      input<T>(gated, up, nullptr, nullptr, width, in_chunks(width, gradient, up_gradient));
  const std::int64_t eights = (width + kEight - 1) / kEight;
  const std::int64_t threads = (eights + kWarp - 1) / kWarp * kWarp;
  launch("expert_activation_backward",
         gated ? weighed_swiglu_backward<T> : weighed_gelu_backward<T>,
         dim3(static_cast<unsigned>(rows < 65536 ? rows : 65536)),
         static_cast<unsigned>(threads < kMostThreads ? threads : kMostThreads), 0, stream, in,
         weights, gradient, up_gradient, weight_gradient, rows, width);
}

#define STEPCAST_INSTANTIATE(T)                                                                  \
  template void expert_activation(ActivationKind, const T*, const float*, T*, std::int64_t,      \
                                  std::int64_t, Stream);                                         \
  template void expert_activation_backward(ActivationKind, const T*, const float*, const T*, T*, \
                                           float*, std::int64_t, std::int64_t, Stream);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)

}  // namespace stepcast::cuda
