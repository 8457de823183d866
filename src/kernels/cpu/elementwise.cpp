// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise.h"

#include <algorithm>
#include <cmath>

#include "core/assert.h"
#include "kernels/cpu/widest.h"

namespace stepcast::cpu {
namespace {

// Squares in double from packs of half as many bytes, so that float fills whole vectors too.
template <typename T>
STEPCAST_INLINE Pack<double> widened(const T* from) {
  return Pack<double>{from[0], from[1], from[2], from[3]};
}

template <typename T>
STEPCAST_INLINE double block_sum_of_squares(const T* data, std::int64_t count) {
  Pack<double> even{};
  Pack<double> odd{};
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const Pack<double> first = widened(data + i);
    const Pack<double> second = widened(data + i + 4);
    even += first * first;
    odd += second * second;
  }
  double sum = sum_of_lanes<double>(even + odd);
  for (; i < count; ++i) sum += static_cast<double>(data[i]) * static_cast<double>(data[i]);
  return sum;
}

template <typename T>
struct AdamWFactors {
  T beta1, rest1;  // rest: 1 - beta
  T beta2, rest2;
  T step_size;          // learning rate / (1 - beta1^t)
  T inverse_root_bias;  // 1/sqrt(1 - beta2^t)
  T epsilon;
  T kept;    // 1 - learning rate * weight decay
  T factor;  // of the gradient
};

template <typename T>
STEPCAST_INLINE Pack<T> square_root(const Pack<T>& x) {
  T lanes[kLanes<T>];
  store<T>(x, lanes, kLanes<T>);
  for (T& lane : lanes) lane = std::sqrt(lane);
  return load(lanes, kLanes<T>);
}

template <typename T>
STEPCAST_INLINE void adamw_pack(const AdamWFactors<T>& by, const T* gradient, T* weight, T* moment1,
                                T* moment2, std::int64_t lanes) {
  const Pack<T> g = by.factor * load(gradient, lanes);
  const Pack<T> m = by.beta1 * load(moment1, lanes) + by.rest1 * g;
  const Pack<T> v = by.beta2 * load(moment2, lanes) + by.rest2 * g * g;
  const Pack<T> denominator = square_root<T>(v) * by.inverse_root_bias + by.epsilon;
  store<T>(m, moment1, lanes);
  store<T>(v, moment2, lanes);
  store<T>(by.kept * load(weight, lanes) - by.step_size * m / denominator, weight, lanes);
}

}  // namespace

template <typename T>
void add_residual(const T* branch, const T* bias, const T* residual, T* out, std::int64_t rows,
                  std::int64_t columns) {
  if (bias == nullptr) return add(branch, residual, out, rows * columns);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t start = row * columns;
    for_packs<T>(columns, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
      const Pack<T> with_bias = load(branch + start + i, lanes) + load(bias + i, lanes);
      store<T>(with_bias + load(residual + start + i, lanes), out + start + i, lanes);
    });
  }
}

template <typename T>
void add(const T* a, const T* b, T* out, std::int64_t count) {
  for_packs<T>(count, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
    store<T>(load(a + i, lanes) + load(b + i, lanes), out + i, lanes);
  });
}

template <typename T>
void accumulate(const T* more, T* sum, std::int64_t count) {
  add(sum, more, sum, count);
}

template <typename T>
void scale(T* data, T factor, std::int64_t count) {
  for_packs<T>(count, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
    store<T>(load(data + i, lanes) * factor, data + i, lanes);
  });
}

template <typename T>
void step_by_sign(const T* gradient, T* weight, T rate, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    weight[i] -= rate * static_cast<T>((gradient[i] > 0) - (gradient[i] < 0));
  }
}

template <typename T>
double sum_of_squares(const T* data, std::int64_t count) {
  constexpr std::int64_t kBlock = 4096;  // rounding grows with a block, not with the whole array
  double sum = 0;
  run_widest([&]() STEPCAST_BODY {
    for (std::int64_t start = 0; start < count; start += kBlock) {
      sum += block_sum_of_squares(data + start, std::min(kBlock, count - start));
    }
  });
  return sum;
}

template <typename T>
void adamw(const AdamW& settings, std::int64_t step, const T* gradient, T* weight, T* moment1,
           T* moment2, std::int64_t count, T factor) {
  STEPCAST_ASSERT(step >= 1, "steps count from 1");
  const auto t = static_cast<double>(step);
  const double bias1 = 1 - std::pow(settings.beta1, t);
  const double bias2 = 1 - std::pow(settings.beta2, t);
  const AdamWFactors<T> by{T(settings.beta1),
                           T(1 - settings.beta1),
                           T(settings.beta2),
                           T(1 - settings.beta2),
                           T(settings.learning_rate / bias1),
                           T(1 / std::sqrt(bias2)),
                           T(settings.epsilon),
                           T(1 - settings.learning_rate * settings.weight_decay),
                           factor};
  run_widest([&]() STEPCAST_BODY {
    for_packs<T>(count, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
      adamw_pack(by, gradient + i, weight + i, moment1 + i, moment2 + i, lanes);
    });
  });
}

#define STEPCAST_INSTANTIATE(T)                                                             \
  template void add_residual(const T*, const T*, const T*, T*, std::int64_t, std::int64_t); \
  template void add(const T*, const T*, T*, std::int64_t);                                  \
  template void accumulate(const T*, T*, std::int64_t);                                     \
  template void scale(T*, T, std::int64_t);                                                 \
  template void step_by_sign(const T*, T*, T, std::int64_t);                                \
  template double sum_of_squares(const T*, std::int64_t);                                   \
  template void adamw(const AdamW&, std::int64_t, const T*, T*, T*, T*, std::int64_t, T);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(double)

}  // namespace stepcast::cpu
