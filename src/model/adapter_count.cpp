// SPDX-License-Identifier: Apache-2.0
#include "core/assert.h"
#include "model/model.h"

namespace stepcast {

std::int64_t count_adapters(const Model& model, std::int64_t rank, AdapterTargets targets) {
  STEPCAST_ASSERT(!model.moe && !model.mla, "adapters of dense layers only");
  const std::int64_t hidden = model.hidden;
  const std::int64_t query = model.heads * model.head_dim, key = model.kv_heads * model.head_dim;
  const std::int64_t matrices = model.mlp == Mlp::kSwiglu ? 3 : 2;
  std::int64_t widths = 0;
  if (targets.qkv) widths += hidden + query + 2 * (hidden + key);
  if (targets.attention_out) widths += hidden + query;
  if (targets.mlp) widths += matrices * (hidden + model.ffn);
  return model.layers * rank * widths;
}

}  // namespace stepcast
