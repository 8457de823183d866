// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/dropout.h"

namespace stepcast::cpu {
namespace {

// The finaliser of MurmurHash3 (Appleby 2011): every bit of the input moves every bit of the
// output.
std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ x >> 16) * 0x85ebca6b;
  x = (x ^ x >> 13) * 0xc2b2ae35;
  return x ^ x >> 16;
}

}  // namespace

template <typename T>
void dropout(const DropoutShape& shape, const T* x, const T* bias, const T* residual, T* out,
             std::int8_t* mask) {
  const std::uint32_t limit = shape.limit();
  const T scale = shape.scale();
  for (std::int64_t i = 0; i < shape.rows * shape.columns; ++i) {
    const bool kept = mixed(mixed(static_cast<std::uint32_t>(i)) ^ shape.seed) >= limit;
    const T value = bias == nullptr ? x[i] : x[i] + bias[i % shape.columns];
    mask[i] = kept ? 1 : 0;
    out[i] = (kept ? value * scale : 0) + (residual == nullptr ? 0 : residual[i]);
  }
}

template <typename T>
void dropout_backward(const DropoutShape& shape, const T* gradient, const std::int8_t* mask,
                      T* out) {
  const T scale = shape.scale();
  for (std::int64_t i = 0; i < shape.rows * shape.columns; ++i) {
    out[i] = mask[i] != 0 ? gradient[i] * scale : 0;
  }
}

#define STEPCAST_INSTANTIATE(T)                                                               \
  template void dropout(const DropoutShape&, const T*, const T*, const T*, T*, std::int8_t*); \
  template void dropout_backward(const DropoutShape&, const T*, const std::int8_t*, T*);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(double)

}  // namespace stepcast::cpu
