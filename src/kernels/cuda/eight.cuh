// SPDX-License-Identifier: Apache-2.0
// Eight neighbours of an array as fp32: what one thread of a memory-bound kernel handles. One or
// two 16-byte accesses where the array allows them.
#pragma once

#include "kernels/cuda/device.cuh"

namespace stepcast::cuda {

inline constexpr int kEight = 8;

struct Eight {
  float at[kEight];
};

__device__ inline void add_to(Eight& sum, const Eight& more) {
#pragma unroll
  for (int i = 0; i < kEight; ++i) sum.at[i] += more.at[i];
}

// Whether a kernel may access by 16 bytes: these pointers, and rows of so many elements.
template <typename... Pointers>
bool in_chunks(std::int64_t stride, const Pointers*... pointers) {
  return stride % kEight == 0 && ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

__device__ inline Eight unpack(const Chunk& low, const Chunk& high) {
  Eight out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    out.at[i] = __uint_as_float(low.word[i]);
    out.at[i + 4] = __uint_as_float(high.word[i]);
  }
  return out;
}

// Eight neighbours as they are stored, which takes half the registers of fp32 for 16-bit types.
template <typename T>
struct PackedEight {
  Chunk part[sizeof(T) / 2];
};

// Elements from `count` on are 0. With `chunks`, `from` is aligned to 16 bytes.
template <typename T>
__device__ inline PackedEight<T> load_packed(const T* from, std::int64_t count, bool chunks) {
  PackedEight<T> out{};
  if (chunks && count >= kEight) {
    out.part[0] = load_chunk(from);
    if constexpr (sizeof(T) == 4) out.part[1] = load_chunk(from + 4);
    return out;
  }
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    if (i >= count) continue;
    if constexpr (sizeof(T) == 4) {
      out.part[i / 4].word[i % 4] = __float_as_uint(from[i]);
    } else {
      out.part[0].word[i / 2] |= static_cast<std::uint32_t>(from[i].bits) << (i % 2 * 16);
    }
  }
  return out;
}

template <typename T>
__device__ inline Eight unpacked(const PackedEight<T>& packed) {
  Eight out;
  if constexpr (sizeof(T) == 4) {
    out = unpack(packed.part[0], packed.part[1]);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t pair = packed.part[0].word[i];
      out.at[2 * i] = widen(T{static_cast<std::uint16_t>(pair & 0xffff)});
      out.at[2 * i + 1] = widen(T{static_cast<std::uint16_t>(pair >> 16)});
    }
  }
  return out;
}

// Elements from `count` on are `rest`. With `chunks`, `from` is aligned to 16 bytes.
template <typename T>
__device__ inline Eight load_eight(const T* from, std::int64_t count, bool chunks, float rest = 0) {
  if (chunks && count >= kEight) return unpacked(load_packed(from, count, true));
  Eight out;
#pragma unroll
  for (int i = 0; i < kEight; ++i) out.at[i] = i < count ? widen(from[i]) : rest;
  return out;
}

template <typename T>
__device__ inline void store_eight(const Eight& values, T* to, std::int64_t count, bool chunks) {
  if (chunks && count >= kEight) {
    Chunk low, high;
    if constexpr (sizeof(T) == 4) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        low.word[i] = __float_as_uint(values.at[i]);
        high.word[i] = __float_as_uint(values.at[i + 4]);
      }
      store_chunk(high, to + 4);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        low.word[i] = narrow_pair<T>(values.at[2 * i], values.at[2 * i + 1]);
      }
    }
    store_chunk(low, to);
    return;
  }
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    if (i < count) to[i] = narrow<T>(values.at[i]);
  }
}

// Flat arrays: the number of blocks that walk over `count` elements, eight to a thread.
inline constexpr unsigned kFlatThreads = 256;
inline unsigned flat_blocks(std::int64_t count) {
  const std::int64_t per_block = kEight * kFlatThreads;
  const std::int64_t blocks = (count + per_block - 1) / per_block;
  return static_cast<unsigned>(blocks < 4096 ? blocks : 4096);
}

// Calls body(start) for the starts of this thread's eights.
template <typename Body>
__device__ inline void for_eights(std::int64_t count, const Body& body) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x * kEight;
  std::int64_t start = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kEight;
  for (; start < count; start += step) body(start);
}

// Matrices: blocks in x cover the columns, those in y walk over the rows.
struct RowGrid {
  unsigned threads;
  unsigned across, down;
};
inline RowGrid row_grid(std::int64_t rows, std::int64_t columns) {
  const std::int64_t eights = (columns + kEight - 1) / kEight;
  const std::int64_t threads = eights >= 256 ? 256 : (eights + kWarp - 1) / kWarp * kWarp;
  return {static_cast<unsigned>(threads), static_cast<unsigned>((eights + threads - 1) / threads),
          static_cast<unsigned>(rows < 4096 ? rows : 4096)};
}
// Calls body(row, column) for the rows of this block and the first column of this thread's eight.
template <typename Body>
__device__ inline void for_rows(std::int64_t rows, std::int64_t columns, const Body& body) {
  const std::int64_t column =
      (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kEight;
  if (column >= columns) return;
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y) body(row, column);
}

// Calls body(column) for this thread's eights of a row that the whole block works on.
template <typename Body>
__device__ inline void for_columns(std::int64_t columns, const Body& body) {
  const auto step = static_cast<std::int64_t>(blockDim.x) * kEight;
  for (std::int64_t i = static_cast<std::int64_t>(threadIdx.x) * kEight; i < columns; i += step) {
    body(i);
  }
}

}  // namespace stepcast::cuda
