// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include <algorithm>

#include "core/assert.h"

namespace stepcast {

namespace {

std::int64_t norm_elements(const Model& model, std::int64_t width) {
  return width * (model.norm_bias ? 2 : 1);
}

// DeepSeek-V2, section 2.1: low-rank queries, one latent for keys and values, and a rotary key
// that all heads share. The down-projections are too narrow to cut: every TP rank holds them.
void add_latent_attention(const Model& model, LayerParameters& count) {
  const Mla& mla = *model.mla;
  const std::int64_t hidden = model.hidden;
  const std::int64_t query_width = model.heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim);
  const std::int64_t latent_width = mla.kv_lora_rank + mla.qk_rope_head_dim;
  if (mla.q_lora_rank > 0) {
    count.replicated += hidden * mla.q_lora_rank + norm_elements(model, mla.q_lora_rank);
    count.attention += mla.q_lora_rank * query_width;
    if (model.qkv_bias) count.replicated += mla.q_lora_rank;
  } else {
    count.attention += hidden * query_width;
  }
  count.replicated += hidden * latent_width + norm_elements(model, mla.kv_lora_rank);
  if (model.qkv_bias) count.replicated += latent_width;
  count.attention +=
      mla.kv_lora_rank * model.heads * (mla.qk_nope_head_dim + mla.v_head_dim);  // up-projections
  count.attention += model.heads * mla.v_head_dim * hidden;                      // output
}

void add_attention(const Model& model, LayerParameters& count) {
  const std::int64_t query_width = model.heads * model.head_dim;
  const std::int64_t key_value_width = model.kv_heads * model.head_dim;
  if (model.mla) {
    add_latent_attention(model, count);
  } else {
    const std::int64_t qkv_width = query_width + 2 * key_value_width;
    count.attention += model.hidden * qkv_width + query_width * model.hidden;
    if (model.qkv_bias) count.attention += qkv_width;
    count.attention += model.attention_sinks * model.heads;
    if (model.query_key_norm) count.replicated += 2 * norm_elements(model, model.head_dim);
    if (model.wide_query_key_norm) {
      count.replicated += norm_elements(model, query_width) + norm_elements(model, key_value_width);
    }
  }
  if (model.attention_output_bias) count.replicated += model.hidden;
}

std::int64_t matrices_of(Mlp mlp) { return mlp == Mlp::kSwiglu ? 3 : 2; }

// Everything of an MLP but the bias of its last matrix.
std::int64_t mlp_elements(const Model& model, std::int64_t width) {
  const std::int64_t matrices = matrices_of(model.mlp);
  return matrices * model.hidden * width + (model.mlp_bias ? (matrices - 1) * width : 0);
}

void add_experts(const Model& model, LayerParameters& count) {
  const Moe& moe = *model.moe;
  const std::int64_t expert = mlp_elements(model, moe.ffn) + (model.mlp_bias ? model.hidden : 0);
  count.experts = moe.experts * expert;
  count.experts_active = moe.top_k * expert;
  count.replicated += model.hidden * moe.experts + (moe.router_bias ? moe.experts : 0);
  if (moe.shared_ffn > 0) {
    count.mlp += mlp_elements(model, moe.shared_ffn);
    if (model.mlp_bias) count.replicated += model.hidden;
    if (moe.shared_gate) count.replicated += model.hidden;
  }
}

}  // namespace

bool Model::is_moe_layer(std::int64_t layer) const {
  if (!moe) return false;
  if (!moe->layer_list.empty()) {
    return std::binary_search(moe->layer_list.begin(), moe->layer_list.end(), layer);
  }
  return layer >= moe->dense_layers && (layer - moe->dense_layers + 1) % moe->layer_every == 0;
}

bool Model::is_windowed(std::int64_t layer) const {
  if (attention_window == 0) return false;
  if (!window_layers.empty()) return window_layers.at(static_cast<std::size_t>(layer));
  return attention_window_every == 1 || (layer + 1) % attention_window_every != 0;
}

LayerParameters count_layer(const Model& model, std::int64_t layer) {
  STEPCAST_ASSERT(layer >= 0 && layer < model.layers, "a layer of the model");
  LayerParameters count;
  add_attention(model, count);
  if (model.is_moe_layer(layer)) {
    add_experts(model, count);
  } else {
    count.mlp = mlp_elements(model, model.ffn);
    if (model.mlp_bias) count.replicated += model.hidden;
  }
  count.replicated += model.norms_per_layer * norm_elements(model, model.hidden);
  return count;
}

ParameterCount count_parameters(const Model& model) {
  ParameterCount count;
  const std::int64_t hidden = model.hidden;
  const std::int64_t width = model.table_width();
  count.embedding = model.vocab * width;
  if (width != hidden) count.embedding += 2 * width * hidden;  // into the blocks and out again
  if (model.position == Position::kLearned) {
    count.embedding += (model.max_positions + model.position_offset) * hidden;
  }
  if (model.embedding_norm) count.embedding += norm_elements(model, hidden);
  if (!model.tied_embeddings) count.head = model.vocab * width;
  if (model.head_bias) count.head += model.vocab;

  std::int64_t idle_experts = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const LayerParameters one = count_layer(model, layer);
    count.layers += one.total();
    idle_experts += one.experts - one.experts_active;
  }
  if (model.final_norm) count.layers += norm_elements(model, hidden);
  count.active = count.embedding + count.head + count.layers - idle_experts;

  if (model.mtp_layers > 0) {
    // DeepSeek-V3, section 2.2: each module joins two normalised inputs by one projection and runs
    // one block like the model's last; it shares embedding and head and has its own last norm.
    const std::int64_t module = count_layer(model, model.layers - 1).total() + 2 * hidden * hidden +
                                3 * norm_elements(model, hidden);
    count.mtp = model.mtp_layers * module;
  }
  return count;
}

}  // namespace stepcast
