// SPDX-License-Identifier: Apache-2.0
// Which parts of a layer selective recomputation drops behind their last use in forward and makes
// again in backward (Megatron: recompute_modules).
#pragma once

#include "layout/scenario.h"

namespace stepcast {

struct RecomputedModules {
  bool core_attention = false;
  bool layernorm = false;       // both norms of a layer
  bool latent_queries = false;  // mla_up_proj: queries, keys and values of latent attention
  bool mlp = false;             // of dense layers
  bool mlp_activation = false;
  bool experts = false;  // moe: the whole layer of experts, its messages too
  bool expert_activation = false;
  bool shared_experts = false;
  // torchtitan_op: all but fused attention, every second product and what is reduced and scattered
  // (torchtitan/distributed/activation_checkpoint.py, _save_list).
  bool operations = false;
  bool operator==(const RecomputedModules&) const = default;
};

// `mode`: of the layer.
RecomputedModules recomputed_modules(const Recompute& recompute, RecomputeMode mode);

}  // namespace stepcast
