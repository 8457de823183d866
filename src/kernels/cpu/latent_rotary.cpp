// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/latent_rotary.h"

#include <algorithm>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/rotary.h"

namespace stepcast::cpu {
namespace {

// Turns the rotary part of every head, in place.
template <typename T>
void turn_heads(const LatentShape& shape, T* heads, bool backward) {
  const std::int64_t stride = shape.heads * shape.key_width();
  for (std::int64_t h = 0; h < shape.heads; ++h) {
    T* part = heads + h * shape.key_width() + shape.plain;
    rotary<T>(shape.batch, shape.sequence, 1, shape.rotary, {part, stride}, {part, stride},
              backward, shape.places);
  }
}

}  // namespace

template <typename T>
void latent_rotary(const LatentShape& shape, T* query, const T* up, Heads<const T> rotary_key,
                   T* key, T* value) {
  turn_heads(shape, query, false);
  const std::int64_t key_row = shape.heads * shape.key_width();
  // The first head's part is turned; the others copy it.
  const Heads<T> first{key + shape.plain, key_row};
  rotary<T>(shape.batch, shape.sequence, 1, shape.rotary, rotary_key, first, false, shape.places);
  for (std::int64_t token = 0; token < shape.tokens(); ++token) {
    const T* turned = first.data + token * first.stride;
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      T* to = key + token * key_row + h * shape.key_width();
      std::copy_n(up, shape.plain, to);
      up += shape.plain;
      if (h > 0) std::copy_n(turned, shape.rotary, to + shape.plain);
      value = std::copy_n(up, shape.value, value);
      up += shape.value;
    }
  }
}

template <typename T>
void latent_rotary_backward(const LatentShape& shape, T* query_gradient, const T* key_gradient,
                            const T* value_gradient, T* up_gradient, T* rotary_gradient) {
  turn_heads(shape, query_gradient, true);
  for (std::int64_t token = 0; token < shape.tokens(); ++token) {
    T* shared = rotary_gradient + token * shape.rotary;
    std::fill_n(shared, shape.rotary, T(0));
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      up_gradient = std::copy_n(key_gradient, shape.plain, up_gradient);
      accumulate(key_gradient + shape.plain, shared, shape.rotary);
      key_gradient += shape.key_width();
      up_gradient = std::copy_n(value_gradient, shape.value, up_gradient);
      value_gradient += shape.value;
    }
  }
  // A rotation is linear: the sum over the heads is turned back once.
  const Heads<T> sums{rotary_gradient, shape.rotary};
  rotary<T>(shape.batch, shape.sequence, 1, shape.rotary, {sums.data, sums.stride}, sums, true,
            shape.places);
}

#define STEPCAST_INSTANTIATE(T)                                                          \
  template void latent_rotary(const LatentShape&, T*, const T*, Heads<const T>, T*, T*); \
  template void latent_rotary_backward(const LatentShape&, T*, const T*, const T*, T*, T*);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(double)

}  // namespace stepcast::cpu
