// SPDX-License-Identifier: Apache-2.0
// The kernel of an operation with data of its own, ready to be called again and again.
#pragma once

#include <cstdint>
#include <functional>

#include "kernels/cuda/stream.h"
#include "operation/operation.h"

namespace stepcast::cuda {
class CudaKernels;
}  // namespace stepcast::cuda

namespace stepcast {

// All calls share this.
struct GpuContext {
  cuda::CudaKernels* kernels;
  std::int64_t cache_bytes;  // of the second level
};

struct GpuCall {
  std::function<void(cuda::Stream)> run;  // queues one call; empty: there is no such kernel here
  double bytes = 0;                       // of a memory-bound kernel: to and from memory
};

// The kernel that the executor would call, on memory of its own (calibrate/measure/scratch_arrays.h
// says which there are). Only batched products and those of fp8, which the executor has no kernel
// for, are called directly. Throws CudaError, of memory too.
GpuCall gpu_call(const Operation::Work& work, const GpuContext& context);

// Several products of one shape at once: points of the surface that attention's own are priced by.
GpuCall batched_gemm_call(const Gemm& gemm, const GpuContext& context);

// Products of fp8, also of experts, as many at once; and what casts to fp8: from bf16, scaled by
// the largest element of a tensor. None where a product's sizes are no multiples of 16.
GpuCall fp8_gemm_call(const Gemm& gemm, const GpuContext& context);
GpuCall fp8_cast_call(const Cast& cast, const GpuContext& context);

}  // namespace stepcast
