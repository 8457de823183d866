// SPDX-License-Identifier: Apache-2.0
// Dense families of Llama's form. Defaults and what carries a bias or a norm:
// huggingface/transformers, src/transformers/models/<family>/.
#include "model/hugging_face_config.h"

namespace stepcast {

namespace {

std::int64_t sliding_window(HuggingFaceConfig& config, std::int64_t fallback) {
  return config.states_null("sliding_window")
             ? 0
             : config.count({"sliding_window"}, fallback, kMaxPositions, 0);
}

void read_attention_bias(HuggingFaceConfig& config, Model& model) {
  model.qkv_bias = model.attention_output_bias = config.flag("attention_bias", false);
}

Model read_llama(HuggingFaceConfig& config) {
  Model model = read_llama_shape(config, {.vocab = 32000, .ffn = 11008, .positions = 2048});
  read_attention_bias(config, model);
  model.mlp_bias = config.flag("mlp_bias", false);
  return model;
}

Model read_mistral(HuggingFaceConfig& config) {
  Model model =
      read_llama_shape(config, {.vocab = 32000, .ffn = 14336, .positions = 131072, .kv_heads = 8});
  read_window(config, model, sliding_window(config, 4096));
  return model;
}

// The window of Qwen is off by default and, when on, holds from layer `max_window_layers` up.
void read_qwen_window(HuggingFaceConfig& config, Model& model) {
  if (!config.flag("use_sliding_window", false)) return;
  read_window(config, model, sliding_window(config, 4096));
  if (config.reader().has("layer_types")) return;
  const std::int64_t first = config.count({"max_window_layers"}, 28, kMaxLayers, 0);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    model.window_layers.push_back(layer >= first);
  }
}

Model read_qwen2(HuggingFaceConfig& config) {
  Model model =
      read_llama_shape(config, {.vocab = 151936, .ffn = 22016, .positions = 32768, .kv_heads = 32});
  model.qkv_bias = true;
  read_qwen_window(config, model);
  return model;
}

Model read_qwen3(HuggingFaceConfig& config) {
  Model model = read_llama_shape(
      config, {.vocab = 151936, .ffn = 22016, .positions = 32768, .kv_heads = 32, .head_dim = 128});
  read_attention_bias(config, model);
  model.query_key_norm = true;
  read_qwen_window(config, model);
  return model;
}

Model read_phi3(HuggingFaceConfig& config) {
  Model model = read_llama_shape(config, {.vocab = 32064, .ffn = 8192, .positions = 4096});
  model.dropout = config.fraction("resid_pdrop", 0);
  read_window(config, model, sliding_window(config, 0));
  return model;
}

Model read_olmo2(HuggingFaceConfig& config) {
  Model model = read_llama_shape(config, {.vocab = 50304, .ffn = 11008, .positions = 2048});
  read_attention_bias(config, model);
  model.wide_query_key_norm = true;
  return model;
}

constexpr FamilyDefaults kGemma2{.vocab = 256000,
                                 .ffn = 9216,
                                 .positions = 8192,
                                 .heads = 0,
                                 .kv_heads = 4,
                                 .head_dim = 256,
                                 .tied = true};
// The published files of Gemma 3 leave heads out where the class agrees with them.
constexpr FamilyDefaults kGemma3{.vocab = 262208,
                                 .ffn = 9216,
                                 .positions = 131072,
                                 .heads = 8,
                                 .kv_heads = 4,
                                 .head_dim = 256,
                                 .tied = true};

Model read_gemma2(HuggingFaceConfig& config) {
  Model model = read_llama_shape(config, kGemma2);
  read_attention_bias(config, model);
  model.norms_per_layer = 4;
  read_window(config, model, sliding_window(config, 4096), 2);
  return model;
}

Model read_gemma3(HuggingFaceConfig& config) {
  Model model = read_llama_shape(config, kGemma3);
  read_attention_bias(config, model);
  model.norms_per_layer = 4;
  model.query_key_norm = true;
  const std::int64_t period =
      config.count({"sliding_window_pattern", "_sliding_window_pattern"}, 6, kMaxLayers);
  read_window(config, model, sliding_window(config, 4096), period);
  return model;
}

constexpr Family kFamilies[] = {
    {"llama", read_llama},   {"mistral", read_mistral}, {"qwen2", read_qwen2},
    {"qwen3", read_qwen3},   {"phi3", read_phi3},       {"olmo2", read_olmo2},
    {"gemma2", read_gemma2}, {"gemma3", read_gemma3},   {"gemma3_text", read_gemma3},
};

}  // namespace

std::span<const Family> llama_families() { return kFamilies; }

}  // namespace stepcast
