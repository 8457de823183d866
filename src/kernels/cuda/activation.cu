// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/activation.h"

#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/column_sums.cuh"

namespace stepcast::cuda {
namespace {

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
struct GeluRow {
  PackedEight<T> up, dy;
};
template <typename T>
__device__ inline GeluRow<T> load_gelu(const Input<T>& in, const T* gradient, std::int64_t row,
                                       std::int64_t column, std::int64_t width) {
  return {load_up(in, row, column, width, 0),
          load_packed(gradient + row * width + column, width - column, in.chunks)};
}

// The gradient of eight inputs, which it writes.
template <typename T>
__device__ inline Eight gelu_backward(const Input<T>& in, const GeluRow<T>& loaded, T* up_gradient,
                                      std::int64_t row, std::int64_t column, std::int64_t width) {
  const Eight x = with_bias(in, loaded.up, column, width, 0);
  Eight dx = unpacked(loaded.dy);
#pragma unroll
  for (int i = 0; i < kEight; ++i) dx.at[i] *= gelu_slope(x.at[i]);
  store_eight(dx, up_gradient + row * width + column, width - column, in.chunks);
  return dx;
}

template <typename T>
__global__ void gelu_rows_backward(Input<T> in, const T* gradient, T* up_gradient,
                                   std::int64_t rows, std::int64_t width) {
  for_rows(rows, width, [&](std::int64_t row, std::int64_t column) {
    gelu_backward(in, load_gelu(in, gradient, row, column, width), up_gradient, row, column, width);
  });
}

template <typename T>
__global__ void gelu_rows_backward_sums(Input<T> in, const T* gradient, T* up_gradient,
                                        std::int64_t rows, std::int64_t width, float* of_slices) {
  const std::int64_t column = sum_column();
  Eight sum{};
  for_sum_rows(
      column < width ? rows : 0,
      [&](std::int64_t row) { return load_gelu(in, gradient, row, column, width); },
      [&](std::int64_t row, const GeluRow<T>& loaded) {
        add_to(sum, gelu_backward(in, loaded, up_gradient, row, column, width));
      });
  write_sums(sum, of_slices, width, width);
}

template <typename T>
__global__ void swiglu_rows(Input<T> in, T* out, std::int64_t rows, std::int64_t width) {
  for_rows(rows, width, [&](std::int64_t row, std::int64_t column) {
    Eight gate = with_bias(in, row, column, width, 0);
    const Eight linear = with_bias(in, row, column, width, 1);
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      gate.at[i] = swiglu(gate.at[i], linear.at[i]);
    }
    store_eight(gate, out + row * width + column, width - column, in.chunks);
  });
}

template <typename T>
struct SwigluRow {
  PackedEight<T> gate, linear, dy;
};
template <typename T>
__device__ inline SwigluRow<T> load_swiglu(const Input<T>& in, const T* gradient, std::int64_t row,
                                           std::int64_t column, std::int64_t width) {
  return {load_up(in, row, column, width, 0), load_up(in, row, column, width, 1),
          load_packed(gradient + row * width + column, width - column, in.chunks)};
}

struct BothHalves {
  Eight gate, linear;
};
template <typename T>
__device__ inline BothHalves swiglu_backward(const Input<T>& in, const SwigluRow<T>& loaded,
                                             T* up_gradient, std::int64_t row, std::int64_t column,
                                             std::int64_t width) {
  const std::int64_t count = width - column;
  BothHalves d{with_bias(in, loaded.gate, column, width, 0),
               with_bias(in, loaded.linear, column, width, 1)};
  const Eight dy = unpacked(loaded.dy);
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    const SwigluSlopes slopes = swiglu_slopes(d.gate.at[i], d.linear.at[i]);
    d.gate.at[i] = dy.at[i] * slopes.gate;
    d.linear.at[i] = dy.at[i] * slopes.linear;
  }
  T* to = up_gradient + row * 2 * width + column;
  store_eight(d.gate, to, count, in.chunks);
  store_eight(d.linear, to + width, count, in.chunks);
  return d;
}

template <typename T>
__global__ void swiglu_rows_backward(Input<T> in, const T* gradient, T* up_gradient,
                                     std::int64_t rows, std::int64_t width) {
  for_rows(rows, width, [&](std::int64_t row, std::int64_t column) {
    swiglu_backward(in, load_swiglu(in, gradient, row, column, width), up_gradient, row, column,
                    width);
  });
}

template <typename T>
__global__ void swiglu_rows_backward_sums(Input<T> in, const T* gradient, T* up_gradient,
                                          std::int64_t rows, std::int64_t width, float* of_slices) {
  const std::int64_t column = sum_column();
  BothHalves sum{};
  for_sum_rows(
      column < width ? rows : 0,
      [&](std::int64_t row) { return load_swiglu(in, gradient, row, column, width); },
      [&](std::int64_t row, const SwigluRow<T>& loaded) {
        const BothHalves d = swiglu_backward(in, loaded, up_gradient, row, column, width);
        add_to(sum.gate, d.gate);
        add_to(sum.linear, d.linear);
      });
  write_sums(sum.gate, of_slices, 2 * width, width);
  write_sums(sum.linear, of_slices + width, 2 * width, width);
}

}  // namespace

template <typename T>
void activation(ActivationKind kind, const T* up, const T* bias, T* out, std::int64_t rows,
                std::int64_t width, Stream stream, const T* linear) {
  if (rows == 0 || width == 0) return;
  const bool swiglu = kind == ActivationKind::kSwiglu;
  const Input<T> in = input(swiglu, up, linear, bias, width, in_chunks(width, out));
  const RowGrid grid = row_grid(rows, width);
  launch("activation", swiglu ? swiglu_rows<T> : gelu_rows<T>, dim3(grid.across, grid.down),
         grid.threads, 0, stream, in, out, rows, width);
}

template <typename T, typename Gradient>
void activation_backward(ActivationKind kind, const T* up, const T* bias, const T* gradient,
                         T* up_gradient, const ActivationBias<Gradient>* bias_gradient,
                         std::int64_t rows, std::int64_t width, Stream stream, const T* linear) {
  if (width == 0) return;
  const bool swiglu = kind == ActivationKind::kSwiglu;
  const std::int64_t up_width = swiglu ? 2 * width : width;
  const Input<T> in =
      input(swiglu, up, linear, bias, width, in_chunks(width, gradient, up_gradient));
  if (bias_gradient == nullptr) {
    if (rows == 0) return;
    const RowGrid grid = row_grid(rows, width);
    launch("activation_backward", swiglu ? swiglu_rows_backward<T> : gelu_rows_backward<T>,
           dim3(grid.across, grid.down), grid.threads, 0, stream, in, gradient, up_gradient, rows,
           width);
    return;
  }
  const SumGrid grid = sum_grid(rows, width);
  if (rows > 0) {
    launch("activation_backward",
           swiglu ? swiglu_rows_backward_sums<T> : gelu_rows_backward_sums<T>,
           dim3(grid.across, grid.slices), kSumThreads, 0, stream, in, gradient, up_gradient, rows,
           width, bias_gradient->workspace);
  }
  sum_slices(bias_gradient->workspace, rows > 0 ? grid.slices : 0, up_width,
             bias_gradient->gradient, up_width, bias_gradient->accumulate, stream);
}

#define STEPCAST_INSTANTIATE_GRADIENT(T, Gradient)                                               \
  template void activation_backward(ActivationKind, const T*, const T*, const T*, T*,            \
                                    const ActivationBias<Gradient>*, std::int64_t, std::int64_t, \
                                    Stream, const T*);
#define STEPCAST_INSTANTIATE(T)                                                                \
  template void activation(ActivationKind, const T*, const T*, T*, std::int64_t, std::int64_t, \
                           Stream, const T*);                                                  \
  STEPCAST_INSTANTIATE_GRADIENT(T, T)
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)
STEPCAST_INSTANTIATE_GRADIENT(Bf16, float)
STEPCAST_INSTANTIATE_GRADIENT(Fp16, float)

}  // namespace stepcast::cuda
