// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "model/model.h"

namespace stepcast {
namespace {

// The sum of inputs and outputs of every matrix that has an adapter, per rank of it.
std::int64_t latent_widths(const Model& model) {
  const Mla& mla = *model.mla;
  const std::int64_t query = model.heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim);
  const std::int64_t up = model.heads * (mla.qk_nope_head_dim + mla.v_head_dim);
  const std::int64_t latent = mla.kv_lora_rank;
  const std::int64_t queries =
      mla.q_lora_rank > 0 ? model.hidden + 2 * mla.q_lora_rank + query : model.hidden + query;
  return queries + (model.hidden + latent + mla.qk_rope_head_dim) + (latent + up);
}

std::int64_t attention_widths(const Model& model, const AdapterTargets& targets, bool packed) {
  const std::int64_t query = model.heads * model.head_dim, key = model.kv_heads * model.head_dim;
  const std::int64_t context = model.mla ? model.heads * model.mla->v_head_dim : query;
  std::int64_t widths = 0;
  if (targets.has(AdapterTarget::kQkv)) {
    widths += model.mla ? latent_widths(model) : (packed ? 1 : 3) * model.hidden + query + 2 * key;
  }
  if (targets.has(AdapterTarget::kAttentionOut)) widths += model.hidden + context;
  return widths;
}

std::int64_t mlp_widths(const Model& model, std::int64_t ffn, bool packed) {
  const std::int64_t ups = model.mlp == Mlp::kSwiglu ? 2 : 1;
  return (packed ? 1 : ups) * model.hidden + ups * ffn + model.hidden + ffn;
}

std::int64_t layer_widths(const Model& model, std::int64_t layer, const AdapterTargets& targets,
                          const AdapterForm& form) {
  const std::int64_t attention = attention_widths(model, targets, form.packed);
  if (!targets.has(AdapterTarget::kMlp)) return attention;
  if (!model.is_moe_layer(layer)) return attention + mlp_widths(model, model.ffn, form.packed);
  const Moe& moe = *model.moe;
  const std::int64_t shared =
      moe.shared_ffn > 0 ? mlp_widths(model, moe.shared_ffn, form.packed) : 0;
  return attention + shared + form.expert_sets * mlp_widths(model, moe.ffn, true);
}

}  // namespace

bool AdapterTargets::has(AdapterTarget target) const {
  return named.empty() || std::ranges::find(named, target) != named.end();
}

std::int64_t count_adapters(const Model& model, std::int64_t rank, const AdapterTargets& targets,
                            const AdapterForm& form) {
  std::int64_t widths = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    widths += layer_widths(model, layer, targets, form);
  }
  return rank * (widths + model.mtp_layers * layer_widths(model, model.layers - 1, targets, form));
}

}  // namespace stepcast
