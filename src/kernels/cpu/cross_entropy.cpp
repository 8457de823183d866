// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/softmax.h"
#include "kernels/cpu/widest.h"

namespace stepcast::cpu {
namespace {

// A row is handled in parts of 8 KiB of floats. The second look at a part finds it in the first
// cache, so the row, which may be wider than any cache, is read from memory once.
constexpr std::int64_t kBlock = 2048;

template <typename T>
STEPCAST_INLINE T sum_of_exponentials(const T* logits, std::int64_t count, T largest) {
  Pack<T> sum{};
  for_packs<T>(count, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
    sum += exponential<T>(load(logits + i, lanes, kNothing<T>) - largest);
  });
  return sum_of_lanes<T>(sum);
}

template <typename T>
STEPCAST_INLINE void row_cross_entropy(const T* logits, std::int64_t count, T& largest, T& sum) {
  largest = kNothing<T>;
  sum = 0;
  for (std::int64_t start = 0; start < count; start += kBlock) {
    const std::int64_t size = std::min(kBlock, count - start);
    const T candidate = largest_of(logits + start, size);
    if (candidate > largest) {
      sum *= std::exp(largest - candidate);
      largest = candidate;
    }
    sum += sum_of_exponentials(logits + start, size, largest);
  }
}

}  // namespace

template <typename T>
void cross_entropy(const LogitSlice& slice, const T* logits, const std::int64_t* targets,
                   std::int64_t rows, T* largest, T* sum, T* target) {
  run_widest([&]() STEPCAST_BODY {
    for (std::int64_t row = 0; row < rows; ++row) {
      const T* of_row = logits + row * slice.columns;
      row_cross_entropy(of_row, slice.valid, largest[row], sum[row]);
      const std::int64_t column = targets[row] - slice.first;
      target[row] = column >= 0 && column < slice.valid ? of_row[column] : T(0);
    }
  });
}

template <typename T>
void cross_entropy_backward(const LogitSlice& slice, T* logits, const std::int64_t* targets,
                            std::int64_t rows, const T* largest, const T* sum, T scale) {
  run_widest([&]() STEPCAST_BODY {
    for (std::int64_t row = 0; row < rows; ++row) {
      T* of_row = logits + row * slice.columns;
      const T factor = scale / sum[row];
      for_packs<T>(slice.valid, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
        const Pack<T> numerator = exponential<T>(load(of_row + i, lanes) - largest[row]);
        store<T>(numerator * factor, of_row + i, lanes);
      });
      std::fill(of_row + slice.valid, of_row + slice.columns, T(0));
      const std::int64_t column = targets[row] - slice.first;
      if (column >= 0 && column < slice.valid) of_row[column] -= scale;
    }
  });
}

#define STEPCAST_INSTANTIATE(T)                                                                   \
  template void cross_entropy(const LogitSlice&, const T*, const std::int64_t*, std::int64_t, T*, \
                              T*, T*);                                                            \
  template void cross_entropy_backward(const LogitSlice&, T*, const std::int64_t*, std::int64_t,  \
                                       const T*, const T*, T);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(double)

}  // namespace stepcast::cpu
