// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/norm.h"

#include "kernels/cuda/eight.cuh"
#include "kernels/cuda/reduce.cuh"

namespace stepcast::cuda {
namespace {

struct RowStatistics {
  float mean;     // 0 for RMSNorm
  float inverse;  // 1/sqrt(variance + eps)
};

// The variance from differences to the mean: the row comes from the first cache then.
template <typename T>
__device__ inline RowStatistics row_statistics(NormKind kind, const T* x, std::int64_t width,
                                               bool chunks, float* scratch) {
  float mean = 0;
  if (kind == NormKind::kLayer) {
    for_columns(width, [&](std::int64_t i) {
      const Eight values = load_eight(x + i, width - i, chunks);
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) mean += values.at[lane];
    });
    mean = reduce_block<Plus>(mean, 0.0F, scratch) / static_cast<float>(width);
  }
  float squares = 0;
  for_columns(width, [&](std::int64_t i) {
    const Eight values = load_eight(x + i, width - i, chunks, mean);
#pragma unroll
    for (int lane = 0; lane < kEight; ++lane) {
      squares += (values.at[lane] - mean) * (values.at[lane] - mean);
    }
  });
  const float variance = reduce_block<Plus>(squares, 0.0F, scratch) / static_cast<float>(width);
  return {mean, rsqrtf(variance + static_cast<float>(kNormEpsilon))};
}

template <typename T>
__global__ void norm_rows(NormKind kind, const T* x, const T* weight, const T* bias, T* y,
                          std::int64_t rows, std::int64_t width, std::int64_t x_stride,
                          std::int64_t y_stride, bool chunks) {
  __shared__ float scratch[kWarp];
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* from = x + row * x_stride;
    const RowStatistics of_row = row_statistics(kind, from, width, chunks, scratch);
    for_columns(width, [&](std::int64_t i) {
      Eight values = load_eight(from + i, width - i, chunks);
      const Eight factor = load_eight(weight + i, width - i, chunks);
      Eight offset{};
      if (bias != nullptr) offset = load_eight(bias + i, width - i, chunks);
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) {
        const float normal = (values.at[lane] - of_row.mean) * of_row.inverse;
        values.at[lane] = normal * factor.at[lane] + offset.at[lane];
      }
      store_eight(values, y + row * y_stride + i, width - i, chunks);
    });
  }
}

template <typename T>
struct Backward {
  NormKind kind;
  const T* x;
  const T* weight;
  const T* dy;
  T* dx;
  std::int64_t rows, width, x_stride, dy_stride;
  float* weight_slices;
  float* bias_slices;  // may be null
  bool chunks;
};

// With n = (x - mean)/sigma and g = dy * weight: dx = (g - mean(g) - n mean(g n))/sigma, without
// mean(g) for RMSNorm. A thread keeps the sums of its columns in shared memory; no other thread
// touches them.
template <typename T>
__device__ inline void row_backward(const Backward<T>& b, std::int64_t row, float* scratch,
                                    float* weight_sums, float* bias_sums) {
  const T* x = b.x + row * b.x_stride;
  const T* dy = b.dy + row * b.dy_stride;
  const RowStatistics of_row = row_statistics(b.kind, x, b.width, b.chunks, scratch);
  float sum = 0, sum_with_normal = 0;
  for_columns(b.width, [&](std::int64_t i) {
    const std::int64_t count = b.width - i;
    const Eight values = load_eight(x + i, count, b.chunks);
    const Eight up = load_eight(dy + i, count, b.chunks);
    const Eight factor = load_eight(b.weight + i, count, b.chunks);
#pragma unroll
    for (int lane = 0; lane < kEight; ++lane) {
      if (lane >= count) break;
      const float normal = (values.at[lane] - of_row.mean) * of_row.inverse;
      const float g = up.at[lane] * factor.at[lane];
      sum += g;
      sum_with_normal += g * normal;
      weight_sums[i + lane] += up.at[lane] * normal;
      if (bias_sums != nullptr) bias_sums[i + lane] += up.at[lane];
    }
  });
  const auto width = static_cast<float>(b.width);
  const float all = reduce_block<Plus>(sum, 0.0F, scratch);
  const float mean = b.kind == NormKind::kLayer ? all / width : 0;
  const float mean_with_normal = reduce_block<Plus>(sum_with_normal, 0.0F, scratch) / width;
  for_columns(b.width, [&](std::int64_t i) {
    const std::int64_t count = b.width - i;
    const Eight values = load_eight(x + i, count, b.chunks);
    const Eight factor = load_eight(b.weight + i, count, b.chunks);
    Eight out = load_eight(dy + i, count, b.chunks);
#pragma unroll
    for (int lane = 0; lane < kEight; ++lane) {
      const float normal = (values.at[lane] - of_row.mean) * of_row.inverse;
      const float g = out.at[lane] * factor.at[lane];
      out.at[lane] = (g - mean - normal * mean_with_normal) * of_row.inverse;
    }
    store_eight(out, b.dx + row * b.dy_stride + i, count, b.chunks);
  });
}

template <typename T>
__global__ void norm_rows_backward(Backward<T> b) {
  __shared__ float scratch[kWarp];
  auto* weight_sums = reinterpret_cast<float*>(shared_memory());
  float* bias_sums = b.bias_slices == nullptr ? nullptr : weight_sums + b.width;
  const auto each_own = [&](const auto& body) {
    for_columns(b.width, [&](std::int64_t i) {
      for (std::int64_t at = i; at < i + kEight && at < b.width; ++at) body(at);
    });
  };
  each_own([&](std::int64_t at) {
    weight_sums[at] = 0;
    if (bias_sums != nullptr) bias_sums[at] = 0;
  });
  for (std::int64_t row = blockIdx.x; row < b.rows; row += gridDim.x) {
    row_backward(b, row, scratch, weight_sums, bias_sums);
  }
  const std::int64_t slice = blockIdx.x * b.width;
  each_own([&](std::int64_t at) {
    b.weight_slices[slice + at] = weight_sums[at];
    if (bias_sums != nullptr) b.bias_slices[slice + at] = bias_sums[at];
  });
}

unsigned row_threads(std::int64_t width) { return row_grid(1, width).threads; }

}  // namespace

template <typename T>
void norm(NormKind kind, const T* x, const T* weight, const T* bias, T* y, std::int64_t rows,
          std::int64_t width, std::int64_t x_stride, std::int64_t y_stride, Stream stream) {
  if (rows == 0 || width == 0) return;
  const bool chunks =
      in_chunks(width, x, weight, bias, y) && x_stride % kEight == 0 && y_stride % kEight == 0;
  launch("norm", norm_rows<T>, dim3(static_cast<unsigned>(rows < 65536 ? rows : 65536)),
         row_threads(width), 0, stream, kind, x, weight, bias, y, rows, width, x_stride, y_stride,
         chunks);
}

template <typename T, typename Gradient>
void norm_backward(NormKind kind, const T* x, const T* weight, const T* dy, T* dx,
                   Gradient* weight_gradient, Gradient* bias_gradient, bool accumulate,
                   std::int64_t rows, std::int64_t width, std::int64_t x_stride,
                   std::int64_t dy_stride, float* workspace, Stream stream) {
  if (width == 0) return;
  const std::int64_t slices = rows < kColumnSlices ? rows : kColumnSlices;
  float* bias_slices = bias_gradient == nullptr ? nullptr : workspace + column_sum_workspace(width);
  if (rows > 0) {
    const bool chunks =
        in_chunks(width, x, weight, dy, dx) && x_stride % kEight == 0 && dy_stride % kEight == 0;
    const Backward<T> backward{kind,  x,        weight,    dy,        dx,          rows,
                               width, x_stride, dy_stride, workspace, bias_slices, chunks};
    const auto vectors = static_cast<std::size_t>(bias_gradient == nullptr ? 1 : 2);
    launch("norm_backward", norm_rows_backward<T>, dim3(static_cast<unsigned>(slices)),
           row_threads(width), vectors * static_cast<std::size_t>(width) * sizeof(float), stream,
           backward);
  }
  sum_slices(workspace, slices, width, weight_gradient, width, accumulate, stream);
  if (bias_gradient != nullptr) {
    sum_slices(bias_slices, slices, width, bias_gradient, width, accumulate, stream);
  }
}

#define STEPCAST_INSTANTIATE_GRADIENT(T, Gradient)                                              \
  template void norm_backward(NormKind, const T*, const T*, const T*, T*, Gradient*, Gradient*, \
                              bool, std::int64_t, std::int64_t, std::int64_t, std::int64_t,     \
                              float*, Stream);
#define STEPCAST_INSTANTIATE(T)                                                              \
  template void norm(NormKind, const T*, const T*, const T*, T*, std::int64_t, std::int64_t, \
                     std::int64_t, std::int64_t, Stream);                                    \
  STEPCAST_INSTANTIATE_GRADIENT(T, T)
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)
STEPCAST_INSTANTIATE_GRADIENT(Bf16, float)
STEPCAST_INSTANTIATE_GRADIENT(Fp16, float)

}  // namespace stepcast::cuda
