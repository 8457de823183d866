// SPDX-License-Identifier: Apache-2.0
// The softmaxes of attention and the cross-entropy share this, for the rows of a matrix.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/cpu/exponential.h"
#include "kernels/cpu/pack.h"

namespace stepcast::cpu {

// The largest number of an empty row.
template <typename T>
inline constexpr T kNothing = -std::numeric_limits<T>::infinity();

template <typename T>
STEPCAST_INLINE T largest_of(const T* row, std::int64_t count) {
  Pack<T> largest = broadcast(kNothing<T>);
  for_packs<T>(count, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
    largest = larger<T>(load(row + i, lanes, kNothing<T>), largest);
  });
  return largest_lane<T>(largest);
}

// out = exp(in * factor - less), and their sum. `out` may be `in`.
template <typename T>
STEPCAST_INLINE T exponentials(const T* in, T* out, std::int64_t count, T factor, T less) {
  Pack<T> sum{};
  for_packs<T>(count, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
    const Pack<T> values = exponential<T>(load(in + i, lanes, kNothing<T>) * factor - less);
    store<T>(values, out + i, lanes);
    sum += values;
  });
  return sum_of_lanes<T>(sum);
}

}  // namespace stepcast::cpu
