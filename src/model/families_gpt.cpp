// SPDX-License-Identifier: Apache-2.0
// Families of GPT's form: two-matrix MLPs and LayerNorm. Defaults and what carries a bias or a
// norm: huggingface/transformers, src/transformers/models/<family>/.
#include "model/hugging_face_config.h"

namespace stepcast {

namespace {

void set_biases(Model& model, bool linear, bool norm) {
  model.qkv_bias = model.attention_output_bias = model.mlp_bias = linear;
  model.norm_bias = norm;
}

Model read_gpt2(HuggingFaceConfig& config) {
  Model model = read_shape(config, {.vocab = 50257, .positions = 1024, .tied = true});
  set_biases(model, true, true);
  model.dropout = config.fraction("resid_pdrop", 0.1);
  return model;
}

Model read_gpt_neox(HuggingFaceConfig& config) {
  Model model = read_shape(config, {.vocab = 50432, .ffn = 24576, .positions = 2048});
  model.position = Position::kRope;
  set_biases(model, true, true);
  model.qkv_bias = model.attention_output_bias = config.flag("attention_bias", true);
  model.parallel_block = config.flag("use_parallel_residual", true);
  model.dropout = config.fraction("hidden_dropout", 0);
  return model;
}

Model read_opt(HuggingFaceConfig& config) {
  Model model = read_shape(config, {.vocab = 50272, .ffn = 3072, .positions = 2048, .tied = true});
  set_biases(model, config.flag("enable_bias", true), true);
  model.position_offset = 2;
  const std::int64_t width = config.count({"word_embed_proj_dim"}, model.hidden, kMaxWidth);
  if (width != model.hidden) model.embedding_width = width;
  // OPT-350M normalises after each half of a block and so has no norm left for the end.
  model.final_norm = config.flag("do_layer_norm_before", true);
  if (!config.flag("layer_norm_elementwise_affine", true)) {
    config.reader().fail("layer_norm_elementwise_affine", ErrorCode::kNotSupported,
                         "norms without parameters are not modelled");
  }
  model.dropout = config.fraction("dropout", 0.1);
  return model;
}

Model read_bloom(HuggingFaceConfig& config) {
  Model model = read_shape(config, {.vocab = 250880, .positions = 2048, .tied = true});
  model.position = Position::kAlibi;
  set_biases(model, true, true);
  model.embedding_norm = true;
  model.dropout = config.fraction("hidden_dropout", 0);
  return model;
}

Model read_mpt(HuggingFaceConfig& config) {
  Model model = read_shape(config, {.vocab = 50368, .positions = 2048, .tied = true});
  const std::int64_t ratio = config.count({"expansion_ratio"}, 4, 1024);
  model.ffn = ratio * model.hidden;
  const bool biases = !config.flag("no_bias", true);
  set_biases(model, biases, biases);
  bool alibi = true;
  if (const auto attention = config.reader().value("attn_config")) {
    ObjectReader reader(*attention);
    alibi = reader.boolean("alibi").value_or(true);
    model.kv_heads = reader.integer("kv_n_heads", 1, kMaxHeads).value_or(model.heads);
    model.wide_query_key_norm = reader.boolean("qk_ln").value_or(false);
  }
  const bool learned = config.flag("learned_pos_emb", true);
  model.position = alibi ? Position::kAlibi : learned ? Position::kLearned : Position::kNone;
  model.dropout = config.fraction("resid_pdrop", 0);
  return model;
}

Model read_falcon(HuggingFaceConfig& config) {
  Model model = read_shape(config, {.vocab = 65024, .positions = 2048, .tied = true});
  const bool new_form = config.flag("new_decoder_architecture", false);
  const bool parallel = config.flag("parallel_attn", true);
  const bool multi_query = config.flag("multi_query", true);
  if (!new_form) model.kv_heads = multi_query ? 1 : model.heads;
  model.position = config.flag("alibi", false) ? Position::kAlibi : Position::kRope;
  set_biases(model, config.flag("bias", false), true);
  model.parallel_block = parallel || new_form;
  const std::int64_t parallel_norms =
      config.count({"num_ln_in_parallel_attn"}, new_form ? 2 : 1, 2);
  model.norms_per_layer = model.parallel_block ? parallel_norms : 2;
  model.dropout = config.fraction("hidden_dropout", 0);
  return model;
}

Model read_phi(HuggingFaceConfig& config) {
  Model model = read_shape(config, {.vocab = 51200, .ffn = 8192, .positions = 2048});
  model.position = Position::kRope;
  set_biases(model, true, true);
  model.head_bias = true;
  model.parallel_block = true;
  model.norms_per_layer = 1;
  model.query_key_norm = config.flag("qk_layernorm", false);
  model.dropout = config.fraction("resid_pdrop", 0);
  return model;
}

constexpr Family kFamilies[] = {
    {"gpt2", read_gpt2}, {"gpt_neox", read_gpt_neox}, {"opt", read_opt}, {"bloom", read_bloom},
    {"mpt", read_mpt},   {"falcon", read_falcon},     {"phi", read_phi},
};

}  // namespace

std::span<const Family> gpt_families() { return kFamilies; }

}  // namespace stepcast
