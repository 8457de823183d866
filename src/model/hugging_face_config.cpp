// SPDX-License-Identifier: Apache-2.0
#include "model/hugging_face_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/json_tree.h"

namespace stepcast {

std::string_view HuggingFaceConfig::present(const Keys& keys_to_try) {
  for (const std::string_view key : keys_to_try) {
    if (reader_.has(key)) return key;
  }
  return keys_to_try.front();
}

std::int64_t HuggingFaceConfig::count(const Keys& keys_to_try, std::int64_t fallback,
                                      std::int64_t max, std::int64_t min) {
  return reader_.integer(present(keys_to_try), min, max).value_or(fallback);
}

std::int64_t HuggingFaceConfig::required_count(const Keys& keys_to_try, std::int64_t max) {
  return reader_.required_integer(present(keys_to_try), 1, max);
}

bool HuggingFaceConfig::states_null(std::string_view key) const {
  const SortedJson& object = reader_.self().raw();
  const auto found = object.find(key);
  return found != object.end() && found->is_null();
}

bool HuggingFaceConfig::flag(std::string_view key, bool fallback) {
  return reader_.boolean(key).value_or(fallback);
}

double HuggingFaceConfig::fraction(std::string_view key, double fallback) {
  return reader_.number(key, 0, 1).value_or(fallback);
}

double HuggingFaceConfig::number(const Keys& keys_to_try, double max) {
  const std::string_view key = present(keys_to_try);
  return states_null(key) ? 0 : reader_.number(key, 0, max).value_or(0);
}

namespace {

// The keys of rotary positions stand in the file, or since transformers 5 in an object of theirs.
void read_numerics(HuggingFaceConfig& config, Model& model) {
  model.norm_epsilon = config.number(
      {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"}, 1);
  model.rope_base = config.number({"rope_theta", "rotary_emb_base"}, kMaxRopeBase);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto section = config.states_null(key) ? std::nullopt : config.reader().value(key);
    if (!section || !section->is_object()) continue;
    HuggingFaceConfig rope(*section);
    if (model.rope_base == 0) model.rope_base = rope.number({"rope_theta"}, kMaxRopeBase);
    const auto type = rope.reader().text(rope.present({"rope_type", "type"}));
    if (!type || *type == "default") continue;
    model.rope_scaling = *type;
    model.rope_factor = rope.number({"factor"}, kMaxPositions);
  }
}

}  // namespace

Model read_shape(HuggingFaceConfig& config, const FamilyDefaults& defaults) {
  const HuggingFaceConfig::Keys hidden{"hidden_size", "n_embd", "d_model", "n_embed"};
  const HuggingFaceConfig::Keys layers{"num_hidden_layers", "n_layer", "n_layers"};
  const HuggingFaceConfig::Keys heads{"num_attention_heads", "n_head", "n_heads"};
  const HuggingFaceConfig::Keys kv_heads{"num_key_value_heads", "num_kv_heads"};
  Model model;
  model.hidden = config.required_count(hidden, kMaxWidth);
  model.layers = config.required_count(layers, kMaxLayers);
  model.heads = defaults.heads > 0 ? config.count(heads, defaults.heads, kMaxHeads)
                                   : config.required_count(heads, kMaxHeads);
  const bool own_kv_heads = defaults.kv_heads > 0 && !config.states_null(kv_heads.front());
  const std::int64_t usual_kv_heads = own_kv_heads ? defaults.kv_heads : model.heads;
  model.kv_heads = config.count(kv_heads, usual_kv_heads, kMaxHeads);
  model.head_dim = config.count({"head_dim"}, defaults.head_dim, kMaxWidth);
  model.ffn = config.count({"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"},
                           defaults.ffn > 0 ? defaults.ffn : 4 * model.hidden, kMaxWidth);
  model.vocab = config.count({"vocab_size"}, defaults.vocab, kMaxVocab);
  model.max_positions =
      config.count({"max_position_embeddings", "n_positions", "max_seq_len", "seq_length"},
                   defaults.positions, kMaxPositions);
  model.tied_embeddings = config.flag("tie_word_embeddings", defaults.tied);
  read_numerics(config, model);
  config.keys.hidden = config.present(hidden);
  config.keys.layers = config.present(layers);
  config.keys.heads = config.present(heads);
  config.keys.kv_heads = config.present(kv_heads);
  return model;
}

Model read_llama_shape(HuggingFaceConfig& config, const FamilyDefaults& defaults) {
  Model model = read_shape(config, defaults);
  model.mlp = Mlp::kSwiglu;
  model.norm = Norm::kRmsNorm;
  model.position = Position::kRope;
  model.dropout = 0;  // these families have dropout at most on attention weights, 0 by default
  return model;
}

namespace {

// Which layers look back over a window only, as the file lists them.
std::vector<bool> read_layer_types(HuggingFaceConfig& config, Model& model) {
  std::vector<bool> windowed;
  const auto list = config.reader().value("layer_types");
  if (!list) return windowed;
  for (const JsonValue& item : list->items()) {
    const auto type = item.text();
    if (!type) continue;
    if (*type == "chunked_attention") model.attention_chunked = true;
    if (*type != "sliding_attention" && *type != "chunked_attention" && *type != "full_attention") {
      item.fail(ErrorCode::kNotSupported, fmt::format("'{}' layers are not modelled", *type),
                "full_attention, sliding_attention or chunked_attention");
    }
    windowed.push_back(*type != "full_attention");
  }
  if (model.layers > 0 && windowed.size() != static_cast<std::size_t>(model.layers)) {
    list->fail(ErrorCode::kIllegal,
               fmt::format("{} entries for {} layers", windowed.size(), model.layers),
               "one entry per layer");
    windowed.clear();
  }
  return windowed;
}

}  // namespace

void read_window(HuggingFaceConfig& config, Model& model, std::int64_t window, std::int64_t every) {
  model.attention_window = window;
  model.attention_window_every = every;
  const std::vector<bool> windowed = read_layer_types(config, model);
  if (windowed.empty() || window == 0) return;
  if (std::find(windowed.begin(), windowed.end(), true) == windowed.end()) {
    model.attention_window = 0;
    return;
  }
  bool periodic = true;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    periodic &= model.is_windowed(layer) == windowed[static_cast<std::size_t>(layer)];
  }
  if (!periodic) model.window_layers = windowed;
}

}  // namespace stepcast
