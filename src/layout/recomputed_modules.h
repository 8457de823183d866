// SPDX-License-Identifier: Apache-2.0
// Which parts of a layer selective recomputation drops behind their last use in forward and makes
// again in backward (Megatron: recompute_modules).
#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

enum class RecomputedModule : std::uint8_t {
  kCoreAttention,
  kMlpActivation,
  kMlp,        // of dense layers
  kLayerNorm,  // both norms of a layer
  kExpertActivation,
  kExperts,  // the whole layer of experts, its messages too
  kSharedExperts,
  kLatentQueries,  // queries, keys and values of latent attention
  // torchtitan_op: all but fused attention, every second product and what is reduced and scattered
  // (torchtitan/distributed/activation_checkpoint.py, _save_list).
  kOperations
};

struct RecomputedModules {
  std::vector<RecomputedModule> named;  // each once, in the order in which a scenario names them

  bool has(RecomputedModule module) const {
    for (const RecomputedModule each : named) {
      if (each == module) return true;
    }
    return false;
  }
};

}  // namespace stepcast
