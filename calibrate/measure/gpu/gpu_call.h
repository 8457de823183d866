// SPDX-License-Identifier: Apache-2.0
// The kernel of an operation with data of its own, ready to be called again and again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "kernels/cuda/stream.h"
#include "layout/scenario.h"
#include "operation/operation.h"

namespace stepcast::cuda {
class AttentionKernels;
class MatrixProducts;
}  // namespace stepcast::cuda

namespace stepcast {

// What calls share, and what an operation does not say of itself.
struct GpuContext {
  cuda::MatrixProducts* products;  // null: products cannot be called
  cuda::AttentionKernels* attention;
  std::int64_t cache_bytes;  // of the second level
  const Scenario* scenario;  // of the operation
};

struct GpuCall {
  std::function<void(cuda::Stream)> run;  // queues one call; empty: there is no such kernel here
  double bytes = 0;                       // of a memory-bound kernel: to and from memory
};

// There is no kernel here for unfused attention's softmax and transposes, for dropout and for fp8.
// Throws CudaError, of memory too.
GpuCall gpu_call(const Operation& operation, const GpuContext& context);

// The operation's signature, and whatever else the call depends on.
std::string key_of(const Operation& operation, const Scenario& scenario);

// By kind of work; each in a file of its own.
GpuCall gemm_call(const Gemm& gemm, const GpuContext& context);
GpuCall attention_call(const Attention& attention, const GpuContext& context);
GpuCall elementwise_call(const Operation& operation, const Elementwise& kernel,
                         const GpuContext& context);

}  // namespace stepcast
