// SPDX-License-Identifier: Apache-2.0
#include "program/recomputed_modules.h"

namespace stepcast {

RecomputedModules recomputed_modules(const Recompute& recompute, RecomputeMode mode) {
  if (mode != RecomputeMode::kSelective) return {};
  // Some callers state the mode alone.
  if (recompute.modules.empty()) return {.core_attention = true};
  return {.core_attention = recompute.has("core_attention"),
          .layernorm = recompute.has("layernorm"),
          .latent_queries = recompute.has("mla_up_proj"),
          .mlp = recompute.has("mlp"),
          .mlp_activation = recompute.has("mlp_act"),
          .experts = recompute.has("moe"),
          .expert_activation = recompute.has("moe_act"),
          .shared_experts = recompute.has("shared_experts"),
          .operations = recompute.has("torchtitan_op")};
}

}  // namespace stepcast
