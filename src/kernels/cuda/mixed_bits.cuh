// SPDX-License-Identifier: Apache-2.0
// Bits that look random, from a number and a seed.
#pragma once

#include "kernels/cuda/device.cuh"

namespace stepcast::cuda {

// The finaliser of MurmurHash3 (Appleby 2011): every bit of the input moves every bit of the
// output.
__device__ inline std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ x >> 16) * 0x85ebca6b;
  x = (x ^ x >> 13) * 0xc2b2ae35;
  return x ^ x >> 16;
}

}  // namespace stepcast::cuda
