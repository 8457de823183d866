// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/rotary.h"

#include <cmath>

#include "core/assert.h"
#include "kernels/cuda/eight.cuh"

namespace stepcast::cuda {
namespace {

constexpr unsigned kThreads = 256;

__global__ void table_rows(std::int64_t sequence, std::int64_t half, double log2_base,
                           SequencePlaces places, float* table) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       at < sequence * half; at += step) {
    const std::int64_t token = at / half, i = at % half;
    const std::int64_t position =
        token < places.half ? places.first + token : places.second + token - places.half;
    const double frequency = exp2(-log2_base * static_cast<double>(i) / static_cast<double>(half));
    double sine, cosine;
    sincos(static_cast<double>(position) * frequency, &sine, &cosine);
    table[token * 2 * half + i] = static_cast<float>(cosine);
    table[token * 2 * half + half + i] = static_cast<float>(sine);
  }
}

template <typename T>
struct Turn {
  RotarySide<T> query, key;
  std::int64_t sequence, half;
  unsigned batch;
  const float* table;
  float direction;  // 1, or -1 backward
  bool chunks;
};

// A block turns all heads at its positions, so that their angles come from memory once.
template <typename T>
__global__ void rotary_positions(Turn<T> turn) {
  const std::int64_t half = turn.half;
  // Divisions of 64 bits would take longer than the turns.
  const unsigned eights = static_cast<unsigned>(half + kEight - 1) / kEight;
  const auto queries = static_cast<unsigned>(turn.query.heads);
  const unsigned heads = queries + static_cast<unsigned>(turn.key.heads);
  const unsigned items = turn.batch * heads * eights;
  for (std::int64_t position = blockIdx.x; position < turn.sequence; position += gridDim.x) {
    const float* angles = turn.table + position * 2 * half;
    for (unsigned item = threadIdx.x; item < items; item += blockDim.x) {
      const unsigned head_of_batch = item / eights, any = head_of_batch % heads;
      const std::int64_t i = static_cast<std::int64_t>(item % eights) * kEight, left = half - i;
      const bool is_query = any < queries;
      const RotarySide<T>& side = is_query ? turn.query : turn.key;
      const std::int64_t column = (is_query ? any : any - queries) * 2 * half + i;
      const std::int64_t row = head_of_batch / heads * turn.sequence + position;
      const T* from = side.in.data + row * side.in.stride + column;
      T* to = side.out.data + row * side.out.stride + column;
      Eight first = load_eight(from, left, turn.chunks);
      Eight second = load_eight(from + half, left, turn.chunks);
      const Eight c = load_eight(angles + i, left, turn.chunks);
      const Eight s = load_eight(angles + half + i, left, turn.chunks);
#pragma unroll
      for (int lane = 0; lane < kEight; ++lane) {
        const float x = first.at[lane], y = second.at[lane], sine = turn.direction * s.at[lane];
        first.at[lane] = x * c.at[lane] - y * sine;
        second.at[lane] = y * c.at[lane] + x * sine;
      }
      store_eight(first, to, left, turn.chunks);
      store_eight(second, to + half, left, turn.chunks);
    }
  }
}

template <typename T>
bool side_in_chunks(const RotarySide<T>& side) {
  return in_chunks(0, side.in.data, side.out.data) && side.in.stride % kEight == 0 &&
         side.out.stride % kEight == 0;
}

}  // namespace

void rotary_table(std::int64_t sequence, std::int64_t head_dim, float* table, Stream stream,
                  const SequencePlaces& places) {
  STEPCAST_ASSERT(head_dim % 2 == 0, "halves of a head turn together");
  const std::int64_t half = head_dim / 2;
  if (sequence * half == 0) return;
  launch("rotary_table", table_rows, dim3(flat_blocks(sequence * half)), kFlatThreads, 0, stream,
         sequence, half, std::log2(kRotaryBase), places, table);
}

template <typename T>
void rotary(std::int64_t batch, std::int64_t sequence, std::int64_t head_dim,
            const RotarySide<T>& query, const RotarySide<T>& key, const float* table, bool backward,
            Stream stream) {
  STEPCAST_ASSERT(head_dim % 2 == 0, "halves of a head turn together");
  if (batch * sequence * (query.heads + key.heads) * head_dim == 0) return;
  const std::int64_t half = head_dim / 2;
  const bool chunks = in_chunks(half, table) && side_in_chunks(query) && side_in_chunks(key);
  STEPCAST_ASSERT(batch * (query.heads + key.heads) * head_dim < (std::int64_t{1} << 31),
                  "the heads of a position are counted in 32 bits");
  const Turn<T> turn{
      query, key, sequence, half, static_cast<unsigned>(batch), table, backward ? -1.0F : 1.0F,
      chunks};
  launch("rotary", rotary_positions<T>,
         dim3(static_cast<unsigned>(sequence < 65536 ? sequence : 65536)), kThreads, 0, stream,
         turn);
}

#define STEPCAST_INSTANTIATE(T)                                                        \
  template void rotary(std::int64_t, std::int64_t, std::int64_t, const RotarySide<T>&, \
                       const RotarySide<T>&, const float*, bool, Stream);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)

}  // namespace stepcast::cuda
