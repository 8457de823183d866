// SPDX-License-Identifier: Apache-2.0
// Kernels by what they do. Operations of a forecast say it themselves; of kernels of frameworks and
// libraries the names are read.
#pragma once

#include <string_view>

namespace stepcast {

struct Operation;

enum class KernelFamily { kProducts, kAttention, kMemoryBound, kOptimizer };
inline constexpr int kKernelFamilies = 4;
const char* name_of(KernelFamily family);  // "matrix products"

KernelFamily family_of(const Operation& operation);
// By the names that cuBLAS, CUTLASS, cuDNN, Flash Attention, hipBLASLt, Triton and PyTorch give.
KernelFamily family_of_kernel(std::string_view name);

}  // namespace stepcast
