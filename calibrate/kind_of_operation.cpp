// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kind_of_operation.h"

namespace stepcast {
namespace {

// An operand has so many at most: profiles of GPUs have no curve for wider ones.
constexpr std::int64_t kMostBytes = 2;

}  // namespace

std::optional<GpuKernelKind> gpu_kernel_kind(const Operation::Work& work) {
  const auto unless_wide = [](DataType type, GpuKernelKind kind) {
    return size_of(type) > kMostBytes ? std::nullopt : std::optional(kind);
  };
  if (const auto gemm = product_of(work)) {
    return unless_wide(gemm->input,
                       is_scaled(gemm->input) ? GpuKernelKind::kGemmFp8 : GpuKernelKind::kGemm);
  }
  if (const auto* grouped = std::get_if<GroupedGemm>(&work)) {
    return unless_wide(grouped->input, GpuKernelKind::kGroupedGemm);
  }
  if (const auto* attention = std::get_if<Attention>(&work)) {
    return unless_wide(attention->type, attention_kind(attention->backward));
  }
  return memory_bound(work) ? std::optional(GpuKernelKind::kMemoryBound) : std::nullopt;
}

}  // namespace stepcast
