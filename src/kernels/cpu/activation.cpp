// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/activation.h"

#include "kernels/cpu/exponential.h"
#include "kernels/cpu/widest.h"

namespace stepcast::cpu {
namespace {

template <typename T>
STEPCAST_INLINE Pack<T> sigmoid(const Pack<T>& x) {
  return T(1) / (exponential<T>(-x) + T(1));
}

// (1 + tanh u)/2 is sigmoid(2u); 2u = sqrt(8/pi) (x + 0.044715 x^3).
template <typename T>
inline constexpr T kGeluSlope = T(1.595769121605730711759784239737892);
template <typename T>
inline constexpr T kGeluCubic = T(0.044715) * kGeluSlope<T>;

template <typename T>
STEPCAST_INLINE Pack<T> gelu(const Pack<T>& x) {
  return x * sigmoid<T>(x * (x * x * kGeluCubic<T> + kGeluSlope<T>));
}

template <typename T>
STEPCAST_INLINE Pack<T> gelu_slope(const Pack<T>& x) {
  const Pack<T> square = x * x;
  const Pack<T> gate = sigmoid<T>(x * (square * kGeluCubic<T> + kGeluSlope<T>));
  const Pack<T> inner = x * (square * (3 * kGeluCubic<T>)+kGeluSlope<T>);
  return gate + gate * (T(1) - gate) * inner;
}

template <typename T>
STEPCAST_INLINE Pack<T> with_bias(const T* up, const T* bias, std::int64_t i, std::int64_t lanes) {
  const Pack<T> x = load(up + i, lanes);
  return bias == nullptr ? x : x + load(bias + i, lanes);
}

template <typename T>
STEPCAST_INLINE void gelu_row(const T* up, const T* bias, T* out, std::int64_t width) {
  for_packs<T>(width, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
    store<T>(gelu<T>(with_bias(up, bias, i, lanes)), out + i, lanes);
  });
}

template <typename T>
STEPCAST_INLINE void gelu_row_backward(const T* up, const T* bias, const T* gradient,
                                       T* up_gradient, std::int64_t width) {
  for_packs<T>(width, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
    const Pack<T> slope = gelu_slope<T>(with_bias(up, bias, i, lanes));
    store<T>(load(gradient + i, lanes) * slope, up_gradient + i, lanes);
  });
}

template <typename T>
STEPCAST_INLINE void swiglu_row(const T* up, const T* half, const T* bias, T* out,
                                std::int64_t width) {
  const T* linear_bias = bias == nullptr ? nullptr : bias + width;
  for_packs<T>(width, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
    const Pack<T> gate = with_bias(up, bias, i, lanes);
    const Pack<T> linear = with_bias(half, linear_bias, i, lanes);
    store<T>(gate * sigmoid<T>(gate) * linear, out + i, lanes);
  });
}

template <typename T>
STEPCAST_INLINE void swiglu_row_backward(const T* up, const T* half, const T* bias,
                                         const T* gradient, T* up_gradient, std::int64_t width) {
  const T* linear_bias = bias == nullptr ? nullptr : bias + width;
  for_packs<T>(width, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
    const Pack<T> gate = with_bias(up, bias, i, lanes);
    const Pack<T> linear = with_bias(half, linear_bias, i, lanes);
    const Pack<T> dy = load(gradient + i, lanes);
    const Pack<T> open = sigmoid<T>(gate);
    const Pack<T> silu = gate * open;
    store<T>(dy * linear * (open + silu * (T(1) - open)), up_gradient + i, lanes);
    store<T>(dy * silu, up_gradient + width + i, lanes);
  });
}

}  // namespace

template <typename T>
void activation(ActivationKind kind, const T* up, const T* bias, T* out, std::int64_t rows,
                std::int64_t width, const T* linear) {
  const bool swiglu = kind == ActivationKind::kSwiglu;
  const std::int64_t stride = swiglu && linear == nullptr ? 2 * width : width;
  run_widest([&]() STEPCAST_BODY {
    for (std::int64_t row = 0; row < rows; ++row) {
      const T* in = up + row * stride;
      const T* half = linear == nullptr ? in + width : linear + row * width;
      swiglu ? swiglu_row(in, half, bias, out + row * width, width)
             : gelu_row(in, bias, out + row * width, width);
    }
  });
}

template <typename T>
void activation_backward(ActivationKind kind, const T* up, const T* bias, const T* gradient,
                         T* up_gradient, std::int64_t rows, std::int64_t width, const T* linear) {
  const bool swiglu = kind == ActivationKind::kSwiglu;
  const std::int64_t up_width = swiglu ? 2 * width : width;
  const std::int64_t stride = linear == nullptr ? up_width : width;
  run_widest([&]() STEPCAST_BODY {
    for (std::int64_t row = 0; row < rows; ++row) {
      const T* in = up + row * stride;
      const T* half = linear == nullptr ? in + width : linear + row * width;
      const T* dy = gradient + row * width;
      T* dx = up_gradient + row * up_width;
      swiglu ? swiglu_row_backward(in, half, bias, dy, dx, width)
             : gelu_row_backward(in, bias, dy, dx, width);
    }
  });
}

#define STEPCAST_INSTANTIATE(T)                                                                \
  template void activation(ActivationKind, const T*, const T*, T*, std::int64_t, std::int64_t, \
                           const T*);                                                          \
  template void activation_backward(ActivationKind, const T*, const T*, const T*, T*,          \
                                    std::int64_t, std::int64_t, const T*);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(double)

}  // namespace stepcast::cpu
