// SPDX-License-Identifier: Apache-2.0
#include "layout/recomputed_layers.h"

#include <algorithm>

namespace stepcast {

RecomputeMode recompute_of(const Recompute& recompute, std::int64_t layer,
                           std::int64_t index_in_chunk) {
  if (recompute.every > 1 && layer % recompute.every != 0) return RecomputeMode::kNone;
  if (recompute.layers > 0 && index_in_chunk >= recompute.layers) return RecomputeMode::kNone;
  return recompute.mode;
}

RecomputedModules recomputed_modules(const Recompute& recompute, RecomputeMode mode) {
  if (mode != RecomputeMode::kSelective) return {};
  // Some callers state the mode alone.
  if (recompute.modules.named.empty()) return {{RecomputedModule::kCoreAttention}};
  return recompute.modules;
}

std::int64_t recomputed_layers(const Recompute& recompute, std::int64_t first, std::int64_t count) {
  if (recompute.mode == RecomputeMode::kNone) return 0;
  const std::int64_t end =
      first + (recompute.layers > 0 ? std::min(count, recompute.layers) : count);
  // Each so-many-th layer of the model: those below the end less those below the beginning.
  const auto below = [every = std::max<std::int64_t>(1, recompute.every)](std::int64_t layer) {
    return (layer + every - 1) / every;
  };
  return below(end) - below(first);
}

}  // namespace stepcast
