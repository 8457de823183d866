// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/widest.h"

namespace stepcast::cpu {
namespace {

template <typename T>
struct RowStatistics {
  T mean;     // 0 for RMSNorm
  T inverse;  // 1/sqrt(variance + eps)
};

// The variance from differences to the mean, a second pass over a row that is in the first cache.
template <typename T>
STEPCAST_INLINE RowStatistics<T> row_statistics(NormKind kind, const T* x, std::int64_t width) {
  T mean = 0;
  if (kind == NormKind::kLayer) {
    Pack<T> sum{};
    for_packs<T>(width, [&](std::int64_t i, std::int64_t lanes)
                            STEPCAST_BODY { sum += load(x + i, lanes); });
    mean = sum_of_lanes<T>(sum) / T(width);
  }
  Pack<T> squares{};
  for_packs<T>(width, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
    const Pack<T> difference = load(x + i, lanes, mean) - mean;
    squares += difference * difference;
  });
  const T variance = sum_of_lanes<T>(squares) / T(width);
  return {mean, 1 / std::sqrt(variance + T(kNormEpsilon))};
}

template <typename T>
STEPCAST_INLINE void norm_row(NormKind kind, const T* x, const T* weight, const T* bias, T* y,
                              std::int64_t width) {
  const RowStatistics<T> row = row_statistics(kind, x, width);
  for_packs<T>(width, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
    const Pack<T> normal = (load(x + i, lanes) - row.mean) * row.inverse;
    const Pack<T> scaled = normal * load(weight + i, lanes);
    store<T>(bias == nullptr ? scaled : scaled + load(bias + i, lanes), y + i, lanes);
  });
}

// With n = (x - mean)/sigma and g = dy * weight: dx = (g - mean(g) - n mean(g n))/sigma, without
// mean(g) for RMSNorm.
template <typename T>
STEPCAST_INLINE void norm_row_backward(NormKind kind, const T* x, const T* weight, const T* dy,
                                       T* dx, T* weight_gradient, T* bias_gradient,
                                       std::int64_t width) {
  const RowStatistics<T> row = row_statistics(kind, x, width);
  Pack<T> sum{};
  Pack<T> sum_with_normal{};
  for_packs<T>(width, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
    const Pack<T> normal = (load(x + i, lanes) - row.mean) * row.inverse;
    const Pack<T> up = load(dy + i, lanes);
    const Pack<T> g = up * load(weight + i, lanes);
    sum += g;
    sum_with_normal += g * normal;
    store<T>(load(weight_gradient + i, lanes) + up * normal, weight_gradient + i, lanes);
    if (bias_gradient == nullptr) return;
    store<T>(load(bias_gradient + i, lanes) + up, bias_gradient + i, lanes);
  });
  const T mean = kind == NormKind::kLayer ? sum_of_lanes<T>(sum) / T(width) : T(0);
  const T mean_with_normal = sum_of_lanes<T>(sum_with_normal) / T(width);
  for_packs<T>(width, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
    const Pack<T> normal = (load(x + i, lanes) - row.mean) * row.inverse;
    const Pack<T> g = load(dy + i, lanes) * load(weight + i, lanes);
    store<T>((g - mean - normal * mean_with_normal) * row.inverse, dx + i, lanes);
  });
}

}  // namespace

template <typename T>
void norm(NormKind kind, const T* x, const T* weight, const T* bias, T* y, std::int64_t rows,
          std::int64_t width, std::int64_t x_stride, std::int64_t y_stride) {
  run_widest([&]() STEPCAST_BODY {
    for (std::int64_t row = 0; row < rows; ++row) {
      norm_row(kind, x + row * x_stride, weight, bias, y + row * y_stride, width);
    }
  });
}

template <typename T>
void norm_backward(NormKind kind, const T* x, const T* weight, const T* dy, T* dx,
                   T* weight_gradient, T* bias_gradient, bool accumulate, std::int64_t rows,
                   std::int64_t width, std::int64_t x_stride, std::int64_t dy_stride) {
  if (!accumulate) {
    std::fill_n(weight_gradient, width, T(0));
    if (bias_gradient != nullptr) std::fill_n(bias_gradient, width, T(0));
  }
  run_widest([&]() STEPCAST_BODY {
    for (std::int64_t row = 0; row < rows; ++row) {
      norm_row_backward(kind, x + row * x_stride, weight, dy + row * dy_stride,
                        dx + row * dy_stride, weight_gradient, bias_gradient, width);
    }
  });
}

#define STEPCAST_INSTANTIATE(T)                                                              \
  template void norm(NormKind, const T*, const T*, const T*, T*, std::int64_t, std::int64_t, \
                     std::int64_t, std::int64_t);                                            \
  template void norm_backward(NormKind, const T*, const T*, const T*, T*, T*, T*, bool,      \
                              std::int64_t, std::int64_t, std::int64_t, std::int64_t);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(double)

}  // namespace stepcast::cpu
