// SPDX-License-Identifier: Apache-2.0
#include "diagnose/kernel_family.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/text/characters.h"
#include "operation/attention_parts.h"
#include "operation/expert_parts.h"
#include "operation/operation.h"
#include "operation/phase.h"

namespace stepcast {
namespace {

struct NameRule {
  std::string_view part;  // in small letters
  KernelFamily family;
};

// The first that is part of a name holds: an optimizer's fused kernel may name a product's type.
constexpr std::array kRules{NameRule{"multi_tensor_apply", KernelFamily::kOptimizer},
                            NameRule{"adam", KernelFamily::kOptimizer},
                            NameRule{"sgd", KernelFamily::kOptimizer},
                            NameRule{"lamb_", KernelFamily::kOptimizer},
                            NameRule{"l2norm", KernelFamily::kOptimizer},
                            NameRule{"flash", KernelFamily::kAttention},
                            NameRule{"fmha", KernelFamily::kAttention},
                            NameRule{"attn_fwd", KernelFamily::kAttention},
                            NameRule{"attn_bwd", KernelFamily::kAttention},
                            NameRule{"_attention_", KernelFamily::kAttention},
                            NameRule{"sdpa", KernelFamily::kAttention},
                            NameRule{"nvjet", KernelFamily::kProducts},
                            NameRule{"gemm", KernelFamily::kProducts},
                            NameRule{"cijk_", KernelFamily::kProducts},
                            NameRule{"splitkreduce", KernelFamily::kProducts},
                            NameRule{"cublaslt", KernelFamily::kProducts},
                            NameRule{"fprop", KernelFamily::kProducts},
                            NameRule{"dgrad", KernelFamily::kProducts},
                            NameRule{"wgrad", KernelFamily::kProducts},
                            NameRule{"triton_tem_fused_mm", KernelFamily::kProducts},
                            NameRule{"cutlass", KernelFamily::kProducts}};

}  // namespace

const char* name_of(KernelFamily family) {
  constexpr std::array kNames{"matrix products", "attention", "memory-bound kernels", "optimizer"};
  return kNames[static_cast<std::size_t>(family)];
}

KernelFamily family_of(const Operation& operation) {
  if (operation.phase == Phase::kOptimizer) return KernelFamily::kOptimizer;
  const bool attends = std::holds_alternative<Attention>(operation.work) ||
                       std::holds_alternative<AttentionProduct>(operation.work) ||
                       std::holds_alternative<AttentionSoftmax>(operation.work);
  if (attends) return KernelFamily::kAttention;
  const bool multiplies =
      product_of(operation.work).has_value() || std::holds_alternative<GroupedGemm>(operation.work);
  return multiplies ? KernelFamily::kProducts : KernelFamily::kMemoryBound;
}

KernelFamily family_of_kernel(std::string_view name) {
  // Behind it come types of arguments, which may name anything.
  const std::string small = lower_case(name.substr(0, 400));
  const auto found = std::ranges::find_if(
      kRules, [&](const NameRule& rule) { return small.find(rule.part) != std::string::npos; });
  return found == kRules.end() ? KernelFamily::kMemoryBound : found->family;
}

}  // namespace stepcast
