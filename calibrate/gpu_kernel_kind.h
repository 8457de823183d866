// SPDX-License-Identifier: Apache-2.0
// Which kernels of a GPU stand for each other at the power limit.
#pragma once

namespace stepcast {

// One that ran without rest stands for all of its kind: they draw power alike.
enum class GpuKernelKind {
  kGemm,
  kGemmFp8,
  kGroupedGemm,
  kAttention,
  kAttentionBackward,
  kMemoryBound
};
inline constexpr int kGpuKernelKinds = 6;
const char* name_of(GpuKernelKind kind);  // "gemm_fp8"

inline GpuKernelKind attention_kind(bool backward) {
  return backward ? GpuKernelKind::kAttentionBackward : GpuKernelKind::kAttention;
}

}  // namespace stepcast
