// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/assert.h"
#include "model/model.h"

namespace stepcast {

bool AdapterTargets::has(AdapterTarget target) const {
  return named.empty() || std::ranges::find(named, target) != named.end();
}

std::int64_t count_adapters(const Model& model, std::int64_t rank, const AdapterTargets& targets,
                            bool packed) {
  STEPCAST_ASSERT(!model.moe && !model.mla, "adapters of dense layers only");
  const std::int64_t hidden = model.hidden;
  const std::int64_t query = model.heads * model.head_dim, key = model.kv_heads * model.head_dim;
  const std::int64_t ups = model.mlp == Mlp::kSwiglu ? 2 : 1;
  std::int64_t widths = 0;
  if (targets.has(AdapterTarget::kQkv)) widths += (packed ? 1 : 3) * hidden + query + 2 * key;
  if (targets.has(AdapterTarget::kAttentionOut)) widths += hidden + query;
  if (targets.has(AdapterTarget::kMlp)) {
    widths += (packed ? 1 : ups) * hidden + ups * model.ffn + hidden + model.ffn;
  }
  return model.layers * rank * widths;
}

}  // namespace stepcast
