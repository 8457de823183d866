// SPDX-License-Identifier: Apache-2.0
// Sums and largest values over the lanes of a warp and the threads of a block. Always in the same
// order: the bits do not change from run to run.
#pragma once

#include "kernels/cuda/device.cuh"

namespace stepcast::cuda {

struct Plus {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Larger {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

// Every lane gets the result.
template <typename Operation, typename T>
__device__ inline T reduce_warp(T value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = Operation()(value, __shfl_xor_sync(kAllLanes, value, distance));
  }
  return value;
}

// Every thread gets the result. Blocks are of whole warps. `scratch`: kWarp values of shared memory
// that no thread still reads.
template <typename Operation, typename T>
__device__ inline T reduce_block(T value, T nothing, T* scratch) {
  const unsigned warps = blockDim.x / kWarp;
  value = reduce_warp<Operation>(value);
  if (warps == 1) return value;
  if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = value;
  __syncthreads();
  const unsigned lane = threadIdx.x % kWarp;
  value = reduce_warp<Operation>(lane < warps ? scratch[lane] : nothing);
  __syncthreads();  // scratch is free again
  return value;
}

}  // namespace stepcast::cuda
