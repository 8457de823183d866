// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/noise.h"

#include "kernels/cuda/eight.cuh"
#include "kernels/cuda/fp8.cuh"
#include "kernels/cuda/mixed_bits.cuh"

namespace stepcast::cuda {
namespace {

template <typename T>
__device__ inline T stored(float x) {
  if constexpr (sizeof(T) == 1) {
    return {to_fp8<Fp8Format::kE4m3>(x)};
  } else {
    return narrow<T>(x);
  }
}

template <typename T>
__global__ void fill_all(T* data, std::int64_t count, std::uint32_t seed) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i < count; i += step) {
    const std::uint32_t bits = mixed(mixed(static_cast<std::uint32_t>(i)) ^ seed);
    data[i] = stored<T>(static_cast<float>(bits >> 8) * 0x1p-23F - 1);
  }
}

}  // namespace

template <typename T>
void fill_with_noise(T* data, std::int64_t count, std::uint32_t seed, Stream stream) {
  if (count == 0) return;
  launch("fill_with_noise", fill_all<T>, dim3(flat_blocks(count)), kFlatThreads, 0, stream, data,
         count, seed);
}

template void fill_with_noise(float*, std::int64_t, std::uint32_t, Stream);
template void fill_with_noise(Bf16*, std::int64_t, std::uint32_t, Stream);
template void fill_with_noise(Fp16*, std::int64_t, std::uint32_t, Stream);
template void fill_with_noise(Fp8*, std::int64_t, std::uint32_t, Stream);

}  // namespace stepcast::cuda
