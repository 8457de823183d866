// SPDX-License-Identifier: Apache-2.0
// Kernels are written with this beside the language: launches, shared memory, 16-byte accesses,
// conversions. The tests have a second form of this header in plain C++, in which kernels run
// without a GPU.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <tuple>

#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"

namespace stepcast::cuda {

inline constexpr unsigned kAllLanes = 0xffffffff;
inline constexpr int kWarp = 32;

// More than 48 KiB has to be requested, and a kernel's own arrays count towards them.
inline void request_shared(const char* name, const void* function, std::size_t bytes) {
  if (bytes <= 32 * 1024) return;
  check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)),
        name);
}

// So many blocks give every multiprocessor one.
inline unsigned multiprocessors(const char* name) {
  int device = 0, count = 0;
  check(cudaGetDevice(&device), name);
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), name);
  return static_cast<unsigned>(count);
}

// Blocks of the kernel that the whole device runs at the same time: a wave of them.
template <typename... Parameters>
std::int64_t blocks_at_once(const char* name, void (*kernel)(Parameters...), unsigned threads,
                            std::size_t shared_bytes) {
  const auto* function = reinterpret_cast<const void*>(kernel);
  request_shared(name, function, shared_bytes);
  int each = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, function, static_cast<int>(threads),
                                                      shared_bytes),
        name);
  return static_cast<std::int64_t>(multiprocessors(name)) * each;
}

// `name` is what an error says failed.
template <typename... Parameters, typename... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 blocks, unsigned threads,
            std::size_t shared_bytes, Stream stream, Arguments... arguments) {
  const auto* function = reinterpret_cast<const void*>(kernel);
  request_shared(name, function, shared_bytes);
  std::tuple<Parameters...> values(static_cast<Parameters>(arguments)...);
  std::apply(
      [&](auto&... value) {
        void* pointers[] = {&value...};
        check(cudaLaunchKernel(function, blocks, dim3(threads), pointers, shared_bytes,
                               static_cast<cudaStream_t>(stream)),
              name);
      },
      values);
}

__device__ inline unsigned char* shared_memory() {
  extern __shared__ __align__(16) unsigned char bytes[];
  return bytes;
}

struct Chunk {  // 16 bytes
  std::uint32_t word[4];
};

__device__ inline Chunk load_chunk(const void* from) {
  const uint4 value = *static_cast<const uint4*>(from);
  return {{value.x, value.y, value.z, value.w}};
}

__device__ inline void store_chunk(const Chunk& chunk, void* to) {
  *static_cast<uint4*>(to) = make_uint4(chunk.word[0], chunk.word[1], chunk.word[2], chunk.word[3]);
}

__device__ inline float widen(float x) { return x; }
__device__ inline float widen(Bf16 x) {
  return __uint_as_float(static_cast<std::uint32_t>(x.bits) << 16);
}
__device__ inline float widen(Fp16 x) { return __half2float(__ushort_as_half(x.bits)); }

template <typename T>
__device__ inline T narrow(float x);
template <>
__device__ inline float narrow<float>(float x) {
  return x;
}
template <>
__device__ inline Bf16 narrow<Bf16>(float x) {
  return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
}
template <>
__device__ inline Fp16 narrow<Fp16>(float x) {
  return {__half_as_ushort(__float2half_rn(x))};
}

// Two numbers in one register, the first in the low half.
template <typename T>
__device__ inline std::uint32_t narrow_pair(float low, float high);
template <>
__device__ inline std::uint32_t narrow_pair<Bf16>(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
template <>
__device__ inline std::uint32_t narrow_pair<Fp16>(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// 2^x within 2^-22, 0 where it would be subnormal.
__device__ inline float power_of_two(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

// 1/x within a unit in the last place, 0 where it would be subnormal.
__device__ inline float reciprocal(float x) {
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
  return inverse;
}

}  // namespace stepcast::cuda
