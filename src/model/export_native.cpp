// SPDX-License-Identifier: Apache-2.0
// The way back from a model to the native object.

#include "core/json_tree.h"
#include "model/import_native.h"
#include "model/model.h"

namespace stepcast {

namespace {

const char* name_of(Position position) {
  switch (position) {
    case Position::kLearned:
      return "learned";
    case Position::kRope:
      return "rope";
    case Position::kAlibi:
      return "alibi";
    case Position::kNone:
      return "none";
  }
  return "";
}

const char* name_of(MoeDispatcher dispatcher) {
  switch (dispatcher) {
    case MoeDispatcher::kAllToAll:
      return "alltoall";
    case MoeDispatcher::kAllGather:
      return "allgather";
    case MoeDispatcher::kFlex:
      return "flex";
    case MoeDispatcher::kDeepEp:
      return "deepep";
    case MoeDispatcher::kHybridEp:
      return "hybridep";
  }
  return "";
}

void add_traits(const Model& m, SortedJson& out) {
  const auto add = [&](const char* key, auto value, auto usual) {
    if (value != usual) out[key] = value;
  };
  const bool biases = m.mlp_bias;
  const std::int64_t none = 0;
  add("qkv_bias", m.qkv_bias, biases);
  add("attention_output_bias", m.attention_output_bias, biases);
  add("norm_bias", m.norm_bias, biases && m.norm == Norm::kLayerNorm);
  add("head_bias", m.head_bias, false);
  add("parallel_block", m.parallel_block, false);
  add("embedding_norm", m.embedding_norm, false);
  add("query_key_norm", m.query_key_norm, false);
  add("wide_query_key_norm", m.wide_query_key_norm, false);
  add("final_norm", m.final_norm, true);
  add("norms_per_layer", m.norms_per_layer, std::int64_t{2});
  add("position_offset", m.position_offset, none);
  add("attention_sinks", m.attention_sinks, none);
  add("embedding_width", m.embedding_width, none);
  add("mtp_layers", m.mtp_layers, none);
  add("vocab_multiple", m.vocab_multiple, none);
  add("norm_epsilon", m.norm_epsilon, 0.0);
  add("rope_base", m.rope_base, 0.0);
  add("rope_scaling", m.rope_scaling, std::string());
  add("rope_factor", m.rope_factor, 0.0);
}

void add_window(const Model& m, SortedJson& out) {
  if (m.attention_window == 0) return;
  out["attention_window"] = m.attention_window;
  if (m.attention_chunked) out["attention_chunked"] = true;
  if (m.window_layers.empty()) {
    out["attention_window_every"] = m.attention_window_every;
    return;
  }
  SortedJson layers = SortedJson::array();
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    if (m.is_windowed(layer)) layers.push_back(layer);
  }
  out["window_layers"] = layers;
}

SortedJson to_json(const Moe& moe) {
  SortedJson out = {{"experts", moe.experts},
                    {"top_k", moe.top_k},
                    {"ffn", moe.ffn},
                    {"shared_experts", moe.shared_experts},
                    {"shared_ffn", moe.shared_ffn},
                    {"dense_layers", moe.dense_layers},
                    {"layer_every", moe.layer_every},
                    {"dispatcher", name_of(moe.dispatcher)}};
  if (moe.imbalance != 1) out["imbalance"] = moe.imbalance;
  if (moe.router_bias) out["router_bias"] = true;
  if (moe.shared_gate) out["shared_gate"] = true;
  if (moe.capacity_factor > 0) out["capacity_factor"] = moe.capacity_factor;
  if (moe.dispatcher_sms > 0) out["dispatcher_sms"] = moe.dispatcher_sms;
  if (moe.rank_capacity_factor > 0) out["rank_capacity_factor"] = moe.rank_capacity_factor;
  if (moe.stash_factor > 0) out["stash_factor"] = moe.stash_factor;
  if (moe.fused_mlp) out["fused_mlp"] = true;
  if (!moe.layer_list.empty()) out["layer_list"] = moe.layer_list;
  return out;
}

SortedJson to_json(const Mla& mla) {
  return {{"q_lora_rank", mla.q_lora_rank},
          {"kv_lora_rank", mla.kv_lora_rank},
          {"qk_nope_head_dim", mla.qk_nope_head_dim},
          {"qk_rope_head_dim", mla.qk_rope_head_dim},
          {"v_head_dim", mla.v_head_dim}};
}

}  // namespace

SortedJson to_native_json(const Model& m) {
  SortedJson out = {{"name", m.name},
                    {"layers", m.layers},
                    {"hidden", m.hidden},
                    {"heads", m.heads},
                    {"kv_heads", m.kv_heads},
                    {"head_dim", m.head_dim},
                    {"ffn", m.ffn},
                    {"vocab", m.vocab},
                    {"max_positions", m.max_positions},
                    {"mlp", m.mlp == Mlp::kGelu ? "gelu" : "swiglu"},
                    {"norm", m.norm == Norm::kLayerNorm ? "layernorm" : "rmsnorm"},
                    {"position", name_of(m.position)},
                    {"tied_embeddings", m.tied_embeddings},
                    {"biases", m.mlp_bias}};
  if (m.dropout >= 0) out["dropout"] = m.dropout;
  add_traits(m, out);
  add_window(m, out);
  if (m.moe) out["moe"] = to_json(*m.moe);
  if (m.mla) out["mla"] = to_json(*m.mla);
  return out;
}

}  // namespace stepcast
