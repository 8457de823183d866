// SPDX-License-Identifier: Apache-2.0
// The kernel of an operation with data of its own, ready to be called again and again.
#pragma once

#include <cstdint>
#include <functional>

#include "kernels/cuda/gemm.h"
#include "layout/scenario.h"
#include "operation/operation.h"

namespace stepcast {

// What calls share.
struct GpuContext {
  cuda::MatrixProducts& products;
  std::int64_t cache_bytes;  // of the second level
};

// Queues one call.
using GpuCall = std::function<void(cuda::Stream)>;

// Empty where no kernel does this: unfused attention's softmax and transposes, dropout, products of
// three sizes that fp8 does not take. `model` tells kernels of one kind apart (norm, activation).
// Throws CudaError, of memory too.
GpuCall gpu_call(const Operation& operation, const Model& model, const GpuContext& context);

// By kind of work; each in a file of its own.
GpuCall gemm_call(const Gemm& gemm, const GpuContext& context);
GpuCall attention_call(const Attention& attention, const GpuContext& context);
GpuCall elementwise_call(const Operation& operation, const Elementwise& kernel, const Model& model,
                         const GpuContext& context);

}  // namespace stepcast
