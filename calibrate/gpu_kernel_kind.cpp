// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu_kernel_kind.h"

#include <array>

namespace stepcast {
namespace {

constexpr std::array<const char*, kGpuKernelKinds> kNames = {
    "gemm", "gemm_fp8", "grouped_gemm", "attention", "attention_backward", "memory_bound"};
constexpr std::int64_t kMostBytes =
    2;  // of an operand: profiles of GPUs have no curve for wider ones

}  // namespace

const char* name_of(GpuKernelKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

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
