// SPDX-License-Identifier: Apache-2.0
#include "program/recomputed_modules.h"

#include <algorithm>
#include <string_view>

namespace stepcast {

RecomputedModules recomputed_modules(const Recompute& recompute, RecomputeMode mode) {
  if (mode != RecomputeMode::kSelective) return {};
  // Some callers state the mode alone.
  if (recompute.modules.empty()) return {.core_attention = true};
  const auto has = [&](std::string_view module) {
    return std::ranges::find(recompute.modules, module) != recompute.modules.end();
  };
  return {.core_attention = has("core_attention"),
          .layernorm = has("layernorm"),
          .latent_queries = has("mla_up_proj"),
          .mlp = has("mlp"),
          .mlp_activation = has("mlp_act"),
          .experts = has("moe"),
          .expert_activation = has("moe_act"),
          .shared_experts = has("shared_experts"),
          .operations = has("torchtitan_op")};
}

}  // namespace stepcast
