// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu_kernel_kind.h"

#include <array>
#include <cstddef>

namespace stepcast {
namespace {

constexpr std::array<const char*, kGpuKernelKinds> kNames = {
    "gemm", "gemm_fp8", "grouped_gemm", "attention", "attention_backward", "memory_bound"};

}  // namespace

const char* name_of(GpuKernelKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

}  // namespace stepcast
