// SPDX-License-Identifier: Apache-2.0
// The formulas of activations, and how their inputs are read.
#pragma once

#include "kernels/cuda/eight.cuh"

namespace stepcast::cuda {

// Within some 2^-22, which both approximations keep; exact functions would take as long as memory.
__device__ inline float sigmoid(float x) {
  constexpr float kLog2E = 1.442695040888963407F;
  return reciprocal(1 + power_of_two(-kLog2E * x));
}

// (1 + tanh u)/2 is sigmoid(2u); 2u = sqrt(8/pi) (x + 0.044715 x^3).
inline constexpr float kGeluSlope = 1.595769121605730711759784F;
inline constexpr float kGeluCubic = 0.044715F * kGeluSlope;

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
  std::int64_t stride;  // of up, and of the linear half
  bool chunks;
  const T* linear;  // half of SwiGLU
};

// Halves of SwiGLU lie in one row unless `linear` is not null. `chunks`: of the other arrays.
template <typename T>
Input<T> input(bool swiglu, const T* up, const T* linear, const T* bias, std::int64_t width,
               bool chunks) {
  const bool packed = swiglu && linear == nullptr;
  const T* half = packed ? up + width : linear;
  return {up, bias, packed ? 2 * width : width, chunks && in_chunks(width, up, bias, half), half};
}

// `side` 1 is the linear half of SwiGLU.
template <typename T>
__device__ inline PackedEight<T> load_up(const Input<T>& in, std::int64_t row, std::int64_t column,
                                         std::int64_t width, int side) {
  const T* half = side == 0 ? in.up : in.linear;
  return load_packed(half + row * in.stride + column, width - column, in.chunks);
}

// x + bias
template <typename T>
__device__ inline Eight with_bias(const Input<T>& in, const PackedEight<T>& up, std::int64_t column,
                                  std::int64_t width, int side) {
  Eight x = unpacked(up);
  if (in.bias == nullptr) return x;
  add_to(x, load_eight(in.bias + side * width + column, width - column, in.chunks));
  return x;
}
template <typename T>
__device__ inline Eight with_bias(const Input<T>& in, std::int64_t row, std::int64_t column,
                                  std::int64_t width, int side) {
  return with_bias(in, load_up(in, row, column, width, side), column, width, side);
}

// The gated linear unit x sigmoid(x) y, and its gradients for one of the product.
__device__ inline float swiglu(float gate, float linear) { return gate * sigmoid(gate) * linear; }
struct SwigluSlopes {
  float gate, linear;
};
__device__ inline SwigluSlopes swiglu_slopes(float gate, float linear) {
  const float open = sigmoid(gate);
  const float silu = gate * open;
  return {linear * (open + silu * (1 - open)), silu};
}

}  // namespace stepcast::cuda
