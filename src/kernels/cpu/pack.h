// SPDX-License-Identifier: Apache-2.0
// 32 bytes of floats or doubles, as a vector type that GCC and clang lower to two SSE2 or one AVX2
// register. Every row kernel sums in the same lanes whatever the registers, the compiler and the
// alignment, so its bits do not depend on them.
#pragma once

#include <cstdint>
#include <cstring>

// Everything here is inlined: no vector ever crosses a call, whose convention depends on AVX.
#pragma GCC diagnostic ignored "-Wpsabi"
#define STEPCAST_INLINE [[gnu::always_inline]] inline
#define STEPCAST_BODY __attribute__((always_inline))  // between a lambda's parameters and braces

namespace stepcast::cpu {

template <typename T>
struct PackTypes;
template <>
struct PackTypes<float> {
  using Values = float __attribute__((vector_size(32)));
  using Bits = std::uint32_t __attribute__((vector_size(32)));
};
template <>
struct PackTypes<double> {
  using Values = double __attribute__((vector_size(32)));
  using Bits = std::uint64_t __attribute__((vector_size(32)));
};
template <typename T>
using Pack = typename PackTypes<T>::Values;
template <typename T>
inline constexpr std::int64_t kLanes = 32 / static_cast<std::int64_t>(sizeof(T));

template <typename T>
STEPCAST_INLINE Pack<T> broadcast(T value) {
  return value - Pack<T>{};  // x - 0 is x, also for -0
}

// The first `count` lanes from memory, `rest` in the others.
template <typename T>
STEPCAST_INLINE Pack<T> load(const T* from, std::int64_t count, T rest = T(0)) {
  Pack<T> pack;
  if (count == kLanes<T>) {
    std::memcpy(&pack, from, sizeof(pack));
  } else {
    for (std::int64_t lane = 0; lane < kLanes<T>; ++lane) {
      pack[lane] = lane < count ? from[lane] : rest;
    }
  }
  return pack;
}

template <typename T>
STEPCAST_INLINE void store(const Pack<T>& pack, T* to, std::int64_t count) {
  if (count == kLanes<T>) {
    std::memcpy(to, &pack, sizeof(pack));
  } else {
    for (std::int64_t lane = 0; lane < count; ++lane) to[lane] = pack[lane];
  }
}

// Calls body(i, lanes) for packs that cover [0, count); only the last may be short.
template <typename T, typename Body>
STEPCAST_INLINE void for_packs(std::int64_t count, const Body& body) {
  std::int64_t i = 0;
  for (; i + kLanes<T> <= count; i += kLanes<T>) body(i, kLanes<T>);
  if (i < count) body(i, count - i);
}

template <typename T>
STEPCAST_INLINE Pack<T> larger(const Pack<T>& a, const Pack<T>& b) {
  return a > b ? a : b;
}

template <typename T>
STEPCAST_INLINE T sum_of_lanes(const Pack<T>& pack) {
  T half[kLanes<T> / 2];
  for (std::int64_t i = 0; i < kLanes<T> / 2; ++i) half[i] = pack[i] + pack[i + kLanes<T> / 2];
  T sum = half[0];
  for (std::int64_t i = 1; i < kLanes<T> / 2; ++i) sum += half[i];
  return sum;
}

template <typename T>
STEPCAST_INLINE T largest_lane(const Pack<T>& pack) {
  T largest = pack[0];
  for (std::int64_t i = 1; i < kLanes<T>; ++i) largest = pack[i] > largest ? pack[i] : largest;
  return largest;
}

}  // namespace stepcast::cpu
