// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/latent_rotary.h"

#include "kernels/cuda/device.cuh"

namespace stepcast::cuda {
namespace {

constexpr unsigned kThreads = 256;

struct Pair {
  float first, second;
};

// Angles of one position, half of which are cosines.
struct Angles {
  const float* at;
  int half;
  float direction;  // 1, or -1 backward

  __device__ Pair turned(Pair x, int i) const {
    const float cosine = at[i], sine = direction * at[half + i];
    return {x.first * cosine - x.second * sine, x.second * cosine + x.first * sine};
  }
};

template <typename T>
__device__ inline Pair load_pair(const T* from, int half, int i) {
  return {widen(from[i]), widen(from[half + i])};
}
template <typename T>
__device__ inline void store_pair(Pair x, T* to, int half, int i) {
  to[i] = narrow<T>(x.first);
  to[half + i] = narrow<T>(x.second);
}

struct Sizes {
  int heads, plain, half, value;
  __device__ int key_width() const { return plain + 2 * half; }
  __device__ int up_width() const { return plain + value; }
};
__device__ inline Sizes sizes_of(const LatentShape& shape) {
  return {static_cast<int>(shape.heads), static_cast<int>(shape.plain),
          static_cast<int>(shape.rotary / 2), static_cast<int>(shape.value)};
}

// Calls body(head, i) for i below `width`, by the threads of a block.
template <typename Body>
__device__ inline void for_heads(int heads, int width, const Body& body) {
  for (int item = static_cast<int>(threadIdx.x); item < heads * width;
       item += static_cast<int>(blockDim.x)) {
    body(item / width, item % width);
  }
}

// A block for each token.
template <typename T>
__global__ void latent_rows(LatentShape shape, T* query, const T* up, Heads<const T> rotary_key,
                            T* key, T* value, const float* table) {
  const Sizes size = sizes_of(shape);
  const std::int64_t key_row = size.heads * size.key_width();
  for (std::int64_t token = blockIdx.x; token < shape.batch * shape.sequence; token += gridDim.x) {
    const Angles angles{table + token % shape.sequence * shape.rotary, size.half, 1};
    const T* of_up = up + token * size.heads * size.up_width();
    T* of_key = key + token * key_row;
    for_heads(size.heads, size.half, [&](int head, int i) {
      const int at = head * size.key_width() + size.plain;
      T* turned = query + token * key_row + at;
      store_pair(angles.turned(load_pair(turned, size.half, i), i), turned, size.half, i);
      const Pair shared = load_pair(rotary_key.data + token * rotary_key.stride, size.half, i);
      store_pair(angles.turned(shared, i), of_key + at, size.half, i);
    });
    for_heads(size.heads, size.plain, [&](int head, int i) {
      of_key[head * size.key_width() + i] = of_up[head * size.up_width() + i];
    });
    T* of_value = value + token * size.heads * size.value;
    for_heads(size.heads, size.value, [&](int head, int i) {
      of_value[head * size.value + i] = of_up[head * size.up_width() + size.plain + i];
    });
  }
}

template <typename T>
__global__ void latent_rows_backward(LatentShape shape, T* query_gradient, const T* key_gradient,
                                     const T* value_gradient, T* up_gradient, T* rotary_gradient,
                                     const float* table) {
  const Sizes size = sizes_of(shape);
  const std::int64_t key_row = size.heads * size.key_width();
  for (std::int64_t token = blockIdx.x; token < shape.batch * shape.sequence; token += gridDim.x) {
    const Angles angles{table + token % shape.sequence * shape.rotary, size.half, -1};
    const T* of_key = key_gradient + token * key_row;
    for_heads(size.heads, size.half, [&](int head, int i) {
      T* turned = query_gradient + token * key_row + head * size.key_width() + size.plain;
      store_pair(angles.turned(load_pair(turned, size.half, i), i), turned, size.half, i);
    });
    // The sum over the heads is turned back once.
    for_heads(1, size.half, [&](int, int i) {
      Pair sum{0, 0};
      for (int head = 0; head < size.heads; ++head) {
        const Pair more = load_pair(of_key + head * size.key_width() + size.plain, size.half, i);
        sum = {sum.first + more.first, sum.second + more.second};
      }
      store_pair(angles.turned(sum, i), rotary_gradient + token * shape.rotary, size.half, i);
    });
    T* of_up = up_gradient + token * size.heads * size.up_width();
    for_heads(size.heads, size.plain, [&](int head, int i) {
      of_up[head * size.up_width() + i] = of_key[head * size.key_width() + i];
    });
    const T* of_value = value_gradient + token * size.heads * size.value;
    for_heads(size.heads, size.value, [&](int head, int i) {
      of_up[head * size.up_width() + size.plain + i] = of_value[head * size.value + i];
    });
  }
}

unsigned blocks_of(const LatentShape& shape) {
  return static_cast<unsigned>(shape.tokens() < 65536 ? shape.tokens() : 65536);
}

}  // namespace

template <typename T>
void latent_rotary(const LatentShape& shape, T* query, const T* up, Heads<const T> rotary_key,
                   T* key, T* value, const float* table, Stream stream) {
  if (shape.tokens() * shape.heads == 0) return;
  launch("latent_rotary", latent_rows<T>, dim3(blocks_of(shape)), kThreads, 0, stream, shape, query,
         up, rotary_key, key, value, table);
}

template <typename T>
void latent_rotary_backward(const LatentShape& shape, T* query_gradient, const T* key_gradient,
                            const T* value_gradient, T* up_gradient, T* rotary_gradient,
                            const float* table, Stream stream) {
  if (shape.tokens() * shape.heads == 0) return;
  launch("latent_rotary_backward", latent_rows_backward<T>, dim3(blocks_of(shape)), kThreads, 0,
         stream, shape, query_gradient, key_gradient, value_gradient, up_gradient, rotary_gradient,
         table);
}

#define STEPCAST_INSTANTIATE(T)                                                            \
  template void latent_rotary(const LatentShape&, T*, const T*, Heads<const T>, T*, T*,    \
                              const float*, Stream);                                       \
  template void latent_rotary_backward(const LatentShape&, T*, const T*, const T*, T*, T*, \
                                       const float*, Stream);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)

}  // namespace stepcast::cuda
