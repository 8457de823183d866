// SPDX-License-Identifier: Apache-2.0
// src/kernels/cuda/device.cuh in plain C++: kernels run on the emulated device, whose memory is the
// host's. Accesses that are not aligned throw.
#pragma once

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/stream.h"
#include "kernels/emulated/block.h"
#include "kernels/emulated/runtime.h"
#include "kernels/emulated/traffic.h"
#include "kernels/half_values.h"

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static  // one block at a time
#define __launch_bounds__(...)

using dim3 = stepcast::emulated::Index;

namespace stepcast::cuda {

inline constexpr unsigned kAllLanes = 0xffffffff;
inline constexpr int kWarp = 32;

template <typename... Parameters, typename... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 blocks, unsigned threads,
            std::size_t shared_bytes, Stream stream, Arguments... arguments) {
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0 || blocks.y > 65535 || blocks.z > 65535 ||
      threads > 1024 || shared_bytes > 227 * 1024) {
    throw CudaError(std::string(name) + ": invalid configuration argument");
  }
  // Kernels run where they are launched, once what is before them on their stream has ended.
  cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
  const std::lock_guard one_at_a_time(emulated::device_mutex());
  const emulated::KernelRun run(name);
  gridDim = blocks;
  blockDim = {threads, 1, 1};
  for (unsigned z = 0; z < blocks.z; ++z) {
    for (unsigned y = 0; y < blocks.y; ++y) {
      for (unsigned x = 0; x < blocks.x; ++x) {
        blockIdx = {x, y, z};
        emulated::run_block(threads, shared_bytes,
                            [&] { kernel(static_cast<Parameters>(arguments)...); });
      }
    }
  }
  emulated::spend_launch(static_cast<cudaStream_t>(stream));
}

// There are few, so that a kernel's slices, whose number follows from it, stay a small part of its
// traffic. A GPU has more, and a second-level cache that keeps the slices.
inline unsigned multiprocessors(const char*) { return 32; }

template <typename... Parameters>
std::int64_t blocks_at_once(const char*, void (*)(Parameters...), unsigned, std::size_t) {
  return emulated::blocks_at_once();
}

inline unsigned char* shared_memory() { return emulated::shared_memory(); }

struct Chunk {
  std::uint32_t word[4];
};

inline void expect_aligned(const void* to) {
  if (reinterpret_cast<std::uintptr_t>(to) % sizeof(Chunk) != 0) {
    throw std::logic_error("an access that is not aligned to 16 bytes");
  }
}
// They count their own accesses: what a compiler makes of memcpy differs.
#define STEPCAST_NOT_COUNTED __attribute__((noinline, no_sanitize("thread")))
STEPCAST_NOT_COUNTED inline Chunk load_chunk(const void* from) {
  expect_aligned(from);
  emulated::touch(from, sizeof(Chunk), false);
  Chunk out;
  std::memcpy(&out, from, sizeof out);
  return out;
}
STEPCAST_NOT_COUNTED inline void store_chunk(const Chunk& chunk, void* to) {
  expect_aligned(to);
  emulated::touch(to, sizeof(Chunk), true);
  std::memcpy(to, &chunk, sizeof chunk);
}

template <typename T>
float widen(T x) {
  return to_float(x);
}
template <typename T>
T narrow(float x) {
  return rounded<T>(x);
}
template <typename T>
std::uint32_t narrow_pair(float low, float high) {
  return rounded<T>(low).bits | static_cast<std::uint32_t>(rounded<T>(high).bits) << 16;
}

inline float power_of_two(float x) { return std::exp2(x); }
inline float reciprocal(float x) { return 1 / x; }

}  // namespace stepcast::cuda

inline void __syncthreads() { stepcast::emulated::wait_for_block(); }

template <typename T>
struct LaneExchange {
  T value, result;
  unsigned lane;
};
template <typename T>
T exchange_lanes(T value, unsigned source) {
  LaneExchange<T> mine{value, value, source};
  stepcast::emulated::with_warp(&mine, [](void* const* lanes) {
    for (int i = 0; i < 32; ++i) {
      auto* to = static_cast<LaneExchange<T>*>(lanes[i]);
      to->result = static_cast<LaneExchange<T>*>(lanes[to->lane % 32])->value;
    }
  });
  return mine.result;
}
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return exchange_lanes(value, threadIdx.x % 32 ^ static_cast<unsigned>(mask));
}
template <typename T>
T __shfl_sync(unsigned, T value, int lane) {
  return exchange_lanes(value, static_cast<unsigned>(lane));
}
inline unsigned __ballot_sync(unsigned, bool condition) {
  struct Vote {
    bool condition;
    unsigned all;
  } mine{condition, 0};
  stepcast::emulated::with_warp(&mine, [](void* const* lanes) {
    unsigned all = 0;
    for (int i = 0; i < 32; ++i) {
      all |= static_cast<unsigned>(static_cast<Vote*>(lanes[i])->condition) << i;
    }
    for (int i = 0; i < 32; ++i) static_cast<Vote*>(lanes[i])->all = all;
  });
  return mine.all;
}
inline void __syncwarp() {
  stepcast::emulated::with_warp(nullptr, [](void* const*) {});
}
inline int atomicExch(int* at, int value) {
  const int before = *at;
  *at = value;
  return before;
}
inline int atomicMax(int* at, int value) {
  const int before = *at;
  *at = value > before ? value : before;
  return before;
}
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline float __uint_as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline std::uint32_t __float_as_uint(float x) { return std::bit_cast<std::uint32_t>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
