// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/gpu/gpu_call.h"

namespace stepcast {

GpuCall gpu_call(const Operation& operation, const GpuContext& context) {
  if (const auto* gemm = std::get_if<Gemm>(&operation.work)) return gemm_call(*gemm, context);
  if (const auto* attention = std::get_if<Attention>(&operation.work)) {
    return attention_call(*attention, context);
  }
  if (const auto* kernel = std::get_if<Elementwise>(&operation.work)) {
    return elementwise_call(operation, *kernel, context);
  }
  return {};  // a collective
}

}  // namespace stepcast
