// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/rotary.h"

#include <cmath>

#include "core/assert.h"
#include "kernels/cuda/eight.cuh"

namespace stepcast::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr int kMostPairs = 256;  // halves of the largest head

template <typename T>
struct Turn {
  Heads<const T> in;
  Heads<T> out;
  std::int64_t batch, sequence, heads, half;
  double log2_base;
  double direction;  // 1, or -1 backward
  bool chunks;
};

// A block turns all heads at its positions: sines and cosines are computed once for them.
template <typename T>
__global__ void rotary_positions(Turn<T> turn) {
  __shared__ float cosines[kMostPairs], sines[kMostPairs];
  const std::int64_t half = turn.half, eights = (half + kEight - 1) / kEight;
  for (std::int64_t position = blockIdx.x; position < turn.sequence; position += gridDim.x) {
    __syncthreads();  // the last position's are not needed any more
    for (std::int64_t i = threadIdx.x; i < half; i += blockDim.x) {
      const double frequency =
          exp2(-turn.log2_base * static_cast<double>(i) / static_cast<double>(half));
      double sine, cosine;
      sincos(static_cast<double>(position) * frequency, &sine, &cosine);
      cosines[i] = static_cast<float>(cosine);
      sines[i] = static_cast<float>(turn.direction * sine);
    }
    __syncthreads();
    for (std::int64_t item = threadIdx.x; item < turn.batch * turn.heads * eights;
         item += blockDim.x) {
      const std::int64_t i = item % eights * kEight, head = item / eights % turn.heads;
      const std::int64_t row = item / eights / turn.heads * turn.sequence + position;
      const T* from = turn.in.data + row * turn.in.stride + head * 2 * half + i;
      T* to = turn.out.data + row * turn.out.stride + head * 2 * half + i;
      Eight first = load_eight(from, half - i, turn.chunks);
      Eight second = load_eight(from + half, half - i, turn.chunks);
      const Eight c = load_eight(cosines + i, half - i, false);
      const Eight s = load_eight(sines + i, half - i, false);
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) {
        const float x = first.at[lane], y = second.at[lane];
        first.at[lane] = x * c.at[lane] - y * s.at[lane];
        second.at[lane] = y * c.at[lane] + x * s.at[lane];
      }
      store_eight(first, to, half - i, turn.chunks);
      store_eight(second, to + half, half - i, turn.chunks);
    }
  }
}

}  // namespace

template <typename T>
void rotary(std::int64_t batch, std::int64_t sequence, std::int64_t heads, std::int64_t head_dim,
            Heads<const T> in, Heads<T> out, bool backward, Stream stream) {
  STEPCAST_ASSERT(head_dim % 2 == 0, "halves of a head turn together");
  STEPCAST_ASSERT(head_dim <= 2 * kMostPairs, "a head's sines fit shared memory");
  if (batch * sequence * heads * head_dim == 0) return;
  const std::int64_t half = head_dim / 2;
  const bool chunks =
      in_chunks(half, in.data, out.data) && in.stride % kEight == 0 && out.stride % kEight == 0;
  const Turn<T> turn{
      in, out, batch, sequence, heads, half, std::log2(kRotaryBase), backward ? -1.0 : 1.0, chunks};
  launch("rotary", rotary_positions<T>,
         dim3(static_cast<unsigned>(sequence < 4096 ? sequence : 4096)), kThreads, 0, stream, turn);
}

#define STEPCAST_INSTANTIATE(T)                                                                \
  template void rotary(std::int64_t, std::int64_t, std::int64_t, std::int64_t, Heads<const T>, \
                       Heads<T>, bool, Stream);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)

}  // namespace stepcast::cuda
