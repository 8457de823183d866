// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/fp8.h"

#include "kernels/cuda/eight.cuh"
#include "kernels/cuda/reduce.cuh"

namespace stepcast::cuda {
namespace {

__global__ void set_to_zero(float* value) { *value = 0; }

// Bits of numbers that are not negative are in the numbers' order, and the largest is the same in
// any order.
template <typename T>
__global__ void largest_magnitude(const T* x, std::int64_t count, float* largest, bool chunks) {
  __shared__ float scratch[kWarp];
  float own = 0;
  for_eights(count, [&](std::int64_t start) {
    const Eight values = load_eight(x + start, count - start, chunks);
#pragma unroll
    for (int i = 0; i < kEight; ++i) own = Larger()(fabsf(values.at[i]), own);
  });
  own = reduce_block<Larger>(own, 0.0F, scratch);
  if (threadIdx.x == 0) atomicMax(reinterpret_cast<int*>(largest), __float_as_int(own));
}

template <typename T>
__global__ void quantize_all(const T* x, Fp8* out, const float* largest, float* scale,
                             std::int64_t count, bool chunks) {
  const float most = *largest;
  const float factor = most > 0 ? kLargestFp8 / most : 1;
  if (blockIdx.x == 0 && threadIdx.x == 0) *scale = most > 0 ? most / kLargestFp8 : 1;
  for_eights(count, [&](std::int64_t start) {
    const Eight values = load_eight(x + start, count - start, chunks);
    for (int i = 0; i < kEight && start + i < count; ++i) {
      out[start + i] = narrow<Fp8>(values.at[i] * factor);
    }
  });
}

}  // namespace

template <typename T>
void quantize(const T* x, Fp8* out, float* scale, float* largest, std::int64_t count,
              Stream stream) {
  launch("quantize", set_to_zero, dim3(1), kWarp, 0, stream, largest);
  const dim3 blocks(flat_blocks(count == 0 ? 1 : count));
  launch("quantize", largest_magnitude<T>, blocks, kFlatThreads, 0, stream, x, count, largest,
         in_chunks(0, x));
  launch("quantize", quantize_all<T>, blocks, kFlatThreads, 0, stream, x, out, largest, scale,
         count, in_chunks(0, x));
}

template void quantize(const float*, Fp8*, float*, float*, std::int64_t, Stream);
template void quantize(const Bf16*, Fp8*, float*, float*, std::int64_t, Stream);
template void quantize(const Fp16*, Fp8*, float*, float*, std::int64_t, Stream);

}  // namespace stepcast::cuda
