// SPDX-License-Identifier: Apache-2.0
// Runs an inlined body with the widest vectors of this processor. AVX2 without fused multiply-add:
// packs give the same bits either way.
#pragma once

#include "kernels/cpu/pack.h"

namespace stepcast::cpu {

template <typename Body>
[[gnu::noinline]] void run_baseline(const Body& body) {
  body();
}

#if defined(__x86_64__)
template <typename Body>
[[gnu::noinline, gnu::target("avx2")]] void run_avx2(const Body& body) {
  body();
}
inline bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}
#else
template <typename Body>
void run_avx2(const Body& body) {
  body();
}
inline bool has_avx2() { return false; }
#endif

// `body` and what it calls must be inlined: STEPCAST_INLINE, STEPCAST_BODY.
template <typename Body>
void run_widest(const Body& body) {
  has_avx2() ? run_avx2(body) : run_baseline(body);
}

}  // namespace stepcast::cpu
