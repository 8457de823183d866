// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/activation.h"

#include "kernels/cuda/eight.cuh"

namespace stepcast::cuda {
namespace {

__device__ inline float sigmoid(float x) { return 1 / (1 + expf(-x)); }

// (1 + tanh u)/2 is sigmoid(2u); 2u = sqrt(8/pi) (x + 0.044715 x^3).
constexpr float kGeluSlope = 1.595769121605730711759784F;
constexpr float kGeluCubic = 0.044715F * kGeluSlope;

__device__ inline float gelu(float x) { return x * sigmoid(x * (x * x * kGeluCubic + kGeluSlope)); }

__device__ inline float gelu_slope(float x) {
  const float square = x * x;
  const float gate = sigmoid(x * (square * kGeluCubic + kGeluSlope));
  const float inner = x * (square * (3 * kGeluCubic) + kGeluSlope);
  return gate + gate * (1 - gate) * inner;
}

template <typename T>
struct Input {
  const T* up;
  const T* bias;
  std::int64_t stride;  // of up
  bool chunks;
};

// x + bias; `side` 1 is the linear half of SwiGLU.
template <typename T>
__device__ inline Eight with_bias(const Input<T>& in, std::int64_t row, std::int64_t column,
                                  std::int64_t width, int side) {
  Eight x = load_eight(in.up + row * in.stride + side * width + column, width - column, in.chunks);
  if (in.bias == nullptr) return x;
  const Eight bias = load_eight(in.bias + side * width + column, width - column, in.chunks);
#pragma unroll
  for (int i = 0; i < kEight; ++i) x.at[i] += bias.at[i];
  return x;
}

template <typename T>
__global__ void gelu_rows(Input<T> in, T* out, std::int64_t rows, std::int64_t width) {
  for_rows(rows, width, [&](std::int64_t row, std::int64_t column) {
    Eight x = with_bias(in, row, column, width, 0);
#pragma unroll
    for (int i = 0; i < kEight; ++i) x.at[i] = gelu(x.at[i]);
    store_eight(x, out + row * width + column, width - column, in.chunks);
  });
}

template <typename T>
__global__ void gelu_rows_backward(Input<T> in, const T* gradient, T* up_gradient,
                                   std::int64_t rows, std::int64_t width) {
  for_rows(rows, width, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t at = row * width + column;
    const Eight x = with_bias(in, row, column, width, 0);
    Eight dx = load_eight(gradient + at, width - column, in.chunks);
#pragma unroll
    for (int i = 0; i < kEight; ++i) dx.at[i] *= gelu_slope(x.at[i]);
    store_eight(dx, up_gradient + at, width - column, in.chunks);
  });
}

template <typename T>
__global__ void swiglu_rows(Input<T> in, T* out, std::int64_t rows, std::int64_t width) {
  for_rows(rows, width, [&](std::int64_t row, std::int64_t column) {
    Eight gate = with_bias(in, row, column, width, 0);
    const Eight linear = with_bias(in, row, column, width, 1);
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      gate.at[i] = gate.at[i] * sigmoid(gate.at[i]) * linear.at[i];
    }
    store_eight(gate, out + row * width + column, width - column, in.chunks);
  });
}

template <typename T>
__global__ void swiglu_rows_backward(Input<T> in, const T* gradient, T* up_gradient,
                                     std::int64_t rows, std::int64_t width) {
  for_rows(rows, width, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t count = width - column;
    Eight gate = with_bias(in, row, column, width, 0);
    Eight linear = with_bias(in, row, column, width, 1);
    const Eight dy = load_eight(gradient + row * width + column, count, in.chunks);
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      const float open = sigmoid(gate.at[i]);
      const float silu = gate.at[i] * open;
      gate.at[i] = dy.at[i] * linear.at[i] * (open + silu * (1 - open));
      linear.at[i] = dy.at[i] * silu;
    }
    T* to = up_gradient + row * in.stride + column;
    store_eight(gate, to, count, in.chunks);
    store_eight(linear, to + width, count, in.chunks);
  });
}

}  // namespace

template <typename T>
void activation(ActivationKind kind, const T* up, const T* bias, T* out, std::int64_t rows,
                std::int64_t width, Stream stream) {
  if (rows == 0 || width == 0) return;
  const bool swiglu = kind == ActivationKind::kSwiglu;
  const Input<T> in{up, bias, swiglu ? 2 * width : width, in_chunks(width, up, bias, out)};
  const RowGrid grid = row_grid(rows, width);
  launch("activation", swiglu ? swiglu_rows<T> : gelu_rows<T>, dim3(grid.across, grid.down),
         grid.threads, 0, stream, in, out, rows, width);
}

template <typename T>
void activation_backward(ActivationKind kind, const T* up, const T* bias, const T* gradient,
                         T* up_gradient, std::int64_t rows, std::int64_t width, Stream stream) {
  if (rows == 0 || width == 0) return;
  const bool swiglu = kind == ActivationKind::kSwiglu;
  const Input<T> in{up, bias, swiglu ? 2 * width : width,
                    in_chunks(width, up, bias, gradient, up_gradient)};
  const RowGrid grid = row_grid(rows, width);
  launch("activation_backward", swiglu ? swiglu_rows_backward<T> : gelu_rows_backward<T>,
         dim3(grid.across, grid.down), grid.threads, 0, stream, in, gradient, up_gradient, rows,
         width);
}

#define STEPCAST_INSTANTIATE(T)                                                                \
  template void activation(ActivationKind, const T*, const T*, T*, std::int64_t, std::int64_t, \
                           Stream);                                                            \
  template void activation_backward(ActivationKind, const T*, const T*, const T*, T*,          \
                                    std::int64_t, std::int64_t, Stream);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)

}  // namespace stepcast::cuda
