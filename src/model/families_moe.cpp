// SPDX-License-Identifier: Apache-2.0
// Families with experts. Defaults and what carries a bias or a norm: huggingface/transformers,
// src/transformers/models/<family>/; DeepSeek, Kimi: the modelling files beside their weights.
#include <algorithm>

#include "model/hugging_face_config.h"

namespace stepcast {

namespace {

struct MoeDefaults {
  std::int64_t experts = 0;  // 0: required
  std::int64_t top_k = 0;    // 0: required
  std::int64_t ffn = 0;      // of one expert
};

// The library renamed num_experts to num_local_experts; published files hold either.
Moe read_experts(HuggingFaceConfig& config, const MoeDefaults& defaults) {
  const HuggingFaceConfig::Keys experts{"num_local_experts", "num_experts", "n_routed_experts"};
  const HuggingFaceConfig::Keys top_k{"num_experts_per_tok", "num_experts_per_token"};
  Moe moe;
  moe.experts = defaults.experts > 0 ? config.count(experts, defaults.experts, kMaxHeads)
                                     : config.required_count(experts, kMaxHeads);
  moe.top_k = defaults.top_k > 0 ? config.count(top_k, defaults.top_k, kMaxHeads)
                                 : config.required_count(top_k, kMaxHeads);
  moe.ffn = config.count({"moe_intermediate_size"}, defaults.ffn, kMaxWidth);
  config.keys.experts = config.present(experts);
  config.keys.top_k = config.present(top_k);
  config.keys.dense_layers = "first_k_dense_replace";
  config.keys.layer_every = config.present({"moe_layer_freq", "decoder_sparse_step"});
  return moe;
}

// A list of layers by number, ascending.
std::vector<std::int64_t> read_layer_list(HuggingFaceConfig& config, const char* key,
                                          std::int64_t layers) {
  std::vector<std::int64_t> list;
  const auto value = config.reader().value(key);
  if (!value) return list;
  for (const JsonValue& item : value->items()) {
    const auto layer = item.integer();
    if (!layer) continue;
    if (*layer < 0 || *layer >= layers) {
      item.fail(ErrorCode::kBadValue, "no layer has the number " + std::to_string(*layer),
                "0 to " + std::to_string(layers - 1));
      continue;
    }
    list.push_back(*layer);
  }
  std::sort(list.begin(), list.end());
  return list;
}

Model read_mixtral(HuggingFaceConfig& config) {
  Model model =
      read_llama_shape(config, {.vocab = 32000, .ffn = 14336, .positions = 131072, .kv_heads = 8});
  model.moe = read_experts(config, {.experts = 8, .top_k = 2, .ffn = 0});
  model.moe->ffn = model.ffn;
  read_window(config, model, config.count({"sliding_window"}, 0, kMaxPositions, 0));
  return model;
}

// `decoder_sparse_step` and `mlp_only_layers`: which of Qwen's layers have experts.
void read_qwen_layers(HuggingFaceConfig& config, Model& model) {
  model.moe->layer_every = config.count({"decoder_sparse_step"}, 1, kMaxLayers);
  const auto dense = read_layer_list(config, "mlp_only_layers", model.layers);
  if (dense.empty()) return;
  std::vector<std::int64_t> sparse;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    if (model.is_moe_layer(layer) && !std::binary_search(dense.begin(), dense.end(), layer)) {
      sparse.push_back(layer);
    }
  }
  if (sparse.empty()) {
    model.moe.reset();
  } else {
    model.moe->layer_list = sparse;
  }
}

Model read_qwen2_moe(HuggingFaceConfig& config) {
  Model model =
      read_llama_shape(config, {.vocab = 151936, .ffn = 5632, .positions = 32768, .kv_heads = 16});
  model.qkv_bias = config.flag("qkv_bias", true);
  model.moe = read_experts(config, {.experts = 60, .top_k = 4, .ffn = 1408});
  model.moe->shared_ffn = config.count({"shared_expert_intermediate_size"}, 5632, kMaxWidth, 0);
  model.moe->shared_experts = model.moe->shared_ffn > 0 ? 1 : 0;
  model.moe->shared_gate = true;
  read_qwen_layers(config, model);
  return model;
}

Model read_qwen3_moe(HuggingFaceConfig& config) {
  Model model =
      read_llama_shape(config, {.vocab = 151936, .ffn = 6144, .positions = 32768, .kv_heads = 4});
  model.qkv_bias = model.attention_output_bias = config.flag("attention_bias", false);
  model.query_key_norm = true;
  model.moe = read_experts(config, {.experts = 128, .top_k = 8, .ffn = 768});
  read_qwen_layers(config, model);
  return model;
}

// DeepSeek counts from layer 0: layer L has experts when L is a multiple of `moe_layer_freq`.
void read_sparse_layers(HuggingFaceConfig& config, Model& model, std::int64_t dense_layers) {
  Moe& moe = *model.moe;
  moe.dense_layers = config.count({"first_k_dense_replace"}, dense_layers, kMaxLayers, 0);
  const std::int64_t every = config.count({"moe_layer_freq"}, 1, kMaxLayers);
  if (every == 1) return;
  for (std::int64_t layer = moe.dense_layers; layer < model.layers; ++layer) {
    if (layer % every == 0) moe.layer_list.push_back(layer);
  }
}

void read_shared_experts(HuggingFaceConfig& config, Moe& moe, std::int64_t fallback) {
  moe.shared_experts = config.count({"n_shared_experts"}, fallback, kMaxHeads, 0);
  moe.shared_ffn = moe.shared_experts * moe.ffn;
}

void read_latent_attention(HuggingFaceConfig& config, Model& model) {
  Mla mla;
  mla.q_lora_rank =
      config.states_null("q_lora_rank") ? 0 : config.count({"q_lora_rank"}, 1536, kMaxWidth, 0);
  mla.kv_lora_rank = config.count({"kv_lora_rank"}, 512, kMaxWidth);
  mla.qk_nope_head_dim = config.count({"qk_nope_head_dim"}, 128, kMaxWidth);
  mla.qk_rope_head_dim = config.count({"qk_rope_head_dim"}, 64, kMaxWidth);
  mla.v_head_dim = config.count({"v_head_dim"}, 128, kMaxWidth);
  model.mla = mla;
  model.kv_heads = model.heads;
  model.qkv_bias = model.attention_output_bias = config.flag("attention_bias", false);
}

Model read_deepseek_v2(HuggingFaceConfig& config) {
  Model model = read_llama_shape(config, {.vocab = 102400, .ffn = 11008, .positions = 2048});
  read_latent_attention(config, model);
  model.moe = read_experts(config, {.experts = 0, .top_k = 0, .ffn = 1407});
  read_shared_experts(config, *model.moe, 0);
  read_sparse_layers(config, model, 0);
  return model;
}

// V3 and Kimi K2: the router's correction bias counts (one per expert, buffer of the checkpoint).
Model read_deepseek_v3(HuggingFaceConfig& config) {
  Model model = read_llama_shape(config, {.vocab = 129280, .ffn = 18432, .positions = 4096});
  read_latent_attention(config, model);
  model.moe = read_experts(config, {.experts = 256, .top_k = 8, .ffn = 2048});
  model.moe->router_bias = true;
  read_shared_experts(config, *model.moe, 1);
  read_sparse_layers(config, model, 3);
  model.mtp_layers = config.count({"num_nextn_predict_layers"}, 0, kMaxLayers, 0);
  return model;
}

Model read_glm4_moe(HuggingFaceConfig& config) {
  Model model =
      read_llama_shape(config, {.vocab = 151552, .ffn = 10944, .positions = 131072, .kv_heads = 8});
  model.qkv_bias = config.flag("attention_bias", false);
  model.query_key_norm = config.flag("use_qk_norm", false);
  model.moe = read_experts(config, {.experts = 128, .top_k = 8, .ffn = 1408});
  model.moe->router_bias = true;
  read_shared_experts(config, *model.moe, 1);
  read_sparse_layers(config, model, 1);
  model.mtp_layers = config.count({"num_nextn_predict_layers"}, 0, kMaxLayers, 0);
  return model;
}

Model read_gpt_oss(HuggingFaceConfig& config) {
  Model model = read_llama_shape(
      config, {.vocab = 201088, .ffn = 2880, .positions = 131072, .kv_heads = 8, .head_dim = 64});
  model.qkv_bias = model.attention_output_bias = config.flag("attention_bias", true);
  model.mlp_bias = true;
  model.attention_sinks = 1;
  model.moe = read_experts(config, {.experts = 128, .top_k = 4, .ffn = 0});
  model.moe->ffn = model.ffn;
  model.moe->router_bias = true;
  read_window(config, model, config.count({"sliding_window"}, 128, kMaxPositions, 0), 2);
  return model;
}

Model read_llama4(HuggingFaceConfig& config) {
  Model model = read_llama_shape(
      config, {.vocab = 202048, .ffn = 8192, .positions = 131072, .kv_heads = 8, .head_dim = 128});
  model.qkv_bias = model.attention_output_bias = config.flag("attention_bias", false);
  model.moe = read_experts(config, {.experts = 16, .top_k = 1, .ffn = 0});
  model.moe->ffn = model.moe->shared_ffn = model.ffn;
  model.moe->shared_experts = 1;
  model.ffn = config.count({"intermediate_size_mlp"}, 16384, kMaxWidth);
  model.moe->layer_every = config.count({"interleave_moe_layer_step"}, 1, kMaxLayers);
  config.keys.layer_every = "interleave_moe_layer_step";
  model.moe->layer_list = read_layer_list(config, "moe_layers", model.layers);
  model.attention_chunked = true;
  const std::int64_t period = config.count({"no_rope_layer_interval"}, 4, kMaxLayers);
  read_window(config, model, config.count({"attention_chunk_size"}, 8192, kMaxPositions, 0),
              period);
  return model;
}

constexpr Family kFamilies[] = {
    {"mixtral", read_mixtral},         {"qwen2_moe", read_qwen2_moe},
    {"qwen3_moe", read_qwen3_moe},     {"deepseek_v2", read_deepseek_v2},
    {"deepseek_v3", read_deepseek_v3}, {"kimi_k2", read_deepseek_v3},
    {"glm4_moe", read_glm4_moe},       {"gpt_oss", read_gpt_oss},
    {"llama4", read_llama4},           {"llama4_text", read_llama4},
};

}  // namespace

std::span<const Family> moe_families() { return kFamilies; }

}  // namespace stepcast
