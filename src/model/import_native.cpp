// SPDX-License-Identifier: Apache-2.0
#include "model/import_native.h"

#include <fmt/format.h>

#include <optional>

#include "core/error.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "model/model.h"
#include "model/model_check.h"

namespace stepcast {

namespace {

constexpr std::int64_t kDefaultPositions = 4096;  // the default sequence length's upper end
constexpr std::int64_t kMaxNorms = 4;             // before and after attention and MLP (Gemma 2)

// Only the number of matrices counts: two with a plain activation, three with a gated one.
void read_mlp(ObjectReader& reader, Model& model) {
  const auto choice = reader.choice("mlp", {"gelu", "swiglu", "relu", "squared_relu", "geglu"});
  const bool gated = choice == 1 || choice == 4;
  model.mlp = gated ? Mlp::kSwiglu : Mlp::kGelu;
}

// GPT's form and Llama's form set these traits together; a file may still state each one apart.
void read_form(ObjectReader& reader, Model& model) {
  const bool llama_form = model.mlp == Mlp::kSwiglu;
  const auto norm = reader.choice("norm", {"layernorm", "rmsnorm"});
  model.norm = norm.value_or(llama_form ? 1 : 0) == 1 ? Norm::kRmsNorm : Norm::kLayerNorm;
  const auto position = reader.choice("position", {"learned", "rope", "alibi", "none"});
  constexpr Position kPositions[] = {Position::kLearned, Position::kRope, Position::kAlibi,
                                     Position::kNone};
  model.position = kPositions[position.value_or(llama_form ? 1 : 0)];
  model.tied_embeddings = reader.boolean("tied_embeddings").value_or(!llama_form);
  const bool biases = reader.boolean("biases").value_or(!llama_form);
  model.qkv_bias = model.attention_output_bias = model.mlp_bias = biases;
  model.norm_bias = biases && model.norm == Norm::kLayerNorm;
}

// Single families have these traits beyond the two forms.
void read_traits(ObjectReader& reader, Model& model) {
  const auto flag = [&](const char* key, bool& trait) {
    trait = reader.boolean(key).value_or(trait);
  };
  flag("qkv_bias", model.qkv_bias);
  flag("attention_output_bias", model.attention_output_bias);
  flag("mlp_bias", model.mlp_bias);
  flag("norm_bias", model.norm_bias);
  flag("head_bias", model.head_bias);
  flag("parallel_block", model.parallel_block);
  flag("embedding_norm", model.embedding_norm);
  flag("query_key_norm", model.query_key_norm);
  flag("wide_query_key_norm", model.wide_query_key_norm);
  flag("final_norm", model.final_norm);
  if (model.query_key_norm && model.wide_query_key_norm) {
    reader.fail("wide_query_key_norm", ErrorCode::kIllegal,
                "queries and keys are normed per head or over all heads, not both",
                "query_key_norm or wide_query_key_norm");
  }
  model.norms_per_layer = reader.integer("norms_per_layer", 1, kMaxNorms).value_or(2);
  model.position_offset = reader.integer("position_offset", 0, kMaxPositions).value_or(0);
  model.attention_sinks = reader.integer("attention_sinks", 0, kMaxWidth).value_or(0);
  model.embedding_width = reader.integer("embedding_width", 1, kMaxWidth).value_or(0);
}

// Numbers of layers, ascending and each once.
std::vector<std::int64_t> read_layers(ObjectReader& reader, const char* key, std::int64_t layers) {
  std::vector<std::int64_t> list;
  const auto value = reader.value(key);
  if (!value || layers == 0) return list;  // a missing count has been reported
  for (const JsonValue& item : value->items()) {
    const auto layer = item.integer();
    if (!layer) continue;
    const std::int64_t least = list.empty() ? 0 : list.back() + 1;
    if (*layer >= least && *layer < layers) {
      list.push_back(*layer);
      continue;
    }
    item.fail(ErrorCode::kBadValue, fmt::format("is no layer after those before it: {}", *layer),
              fmt::format("{} to {}, ascending", least, layers - 1));
  }
  if (list.empty() && value->is_array() && value->items().empty()) {
    value->fail(ErrorCode::kBadValue, "names no layer", "leave the key out");
  }
  return list;
}

void read_windows(ObjectReader& reader, Model& model) {
  model.attention_window = reader.integer("attention_window", 0, kMaxPositions).value_or(0);
  model.attention_window_every =
      reader.integer("attention_window_every", 1, kMaxLayers).value_or(1);
  model.attention_chunked = reader.boolean("attention_chunked").value_or(false);
  const auto layers = read_layers(reader, "window_layers", model.layers);
  if (layers.empty()) return;
  model.window_layers.assign(static_cast<std::size_t>(model.layers), false);
  for (const std::int64_t layer : layers) {
    model.window_layers[static_cast<std::size_t>(layer)] = true;
  }
}

void read_numerics(ObjectReader& reader, Model& model) {
  model.norm_epsilon = reader.number("norm_epsilon", 0, 1).value_or(0);
  model.rope_base = reader.number("rope_base", 0, kMaxRopeBase).value_or(0);
  model.rope_scaling = reader.text("rope_scaling").value_or("");
  model.rope_factor = reader.number("rope_factor", 0, kMaxPositions).value_or(0);
}

// Nothing forces the router to spread tokens evenly: the load of the fullest rank over the mean
// (docs/moe.md, "Rows").
constexpr double kLearnedImbalance = 1.6;

// No accelerator has more.
constexpr std::int64_t kMostSms = 1024;

// The most of capacity_factor, too.
constexpr double kMostRoom = 1024;

// Room for rows that is stated beforehand (Megatron-LM, core/transformer/transformer_config.py:
// moe_expert_rank_capacity_factor, moe_paged_stash).
void read_room(ObjectReader& reader, Moe& moe) {
  moe.rank_capacity_factor = reader.number("rank_capacity_factor", 0, kMostRoom).value_or(0);
  moe.stash_factor = reader.number("stash_factor", 0, kMostRoom).value_or(0);
  const auto fail = [&](const char* key, const std::string& what, const std::string& fix) {
    reader.fail(key, ErrorCode::kBadValue, what, fix);
  };
  if (moe.stash_factor > moe.rank_capacity_factor) {
    fail("stash_factor", "is more than buffers have room for",
         fmt::format("0, or at most the rank_capacity_factor, {}", moe.rank_capacity_factor));
  }
  for (const auto& [key, factor] : {std::pair("rank_capacity_factor", moe.rank_capacity_factor),
                                    std::pair("stash_factor", moe.stash_factor)}) {
    if (factor == 0 || factor >= moe.imbalance) continue;
    fail(key, fmt::format("the fullest rank receives {} times the mean", moe.imbalance),
         fmt::format("0, or at least {}", moe.imbalance));
  }
  if (moe.rank_capacity_factor == 0) return;
  if (moe.dispatcher != MoeDispatcher::kHybridEp) {
    fail("rank_capacity_factor", "HybridEP alone fills buffers whose size is known beforehand",
         "0, or dispatcher hybridep");
  }
  if (moe.capacity_factor > 0) {
    fail("rank_capacity_factor", "capacity_factor already fixes what every expert takes",
         "one of the two");
  }
}

void read_moe(ObjectReader& reader, Model& model, bool states_ffn) {
  Moe moe;
  moe.experts = reader.required_integer("experts", 1, kMaxHeads);
  moe.top_k = reader.required_integer("top_k", 1, kMaxHeads);
  moe.ffn = states_ffn ? reader.integer("ffn", 1, kMaxWidth).value_or(model.ffn)
                       : reader.required_integer("ffn", 1, kMaxWidth);
  moe.shared_experts = reader.integer("shared_experts", 0, kMaxHeads).value_or(0);
  moe.shared_ffn =
      reader.integer("shared_ffn", 0, kMaxWidth).value_or(moe.shared_experts * moe.ffn);
  if (moe.shared_ffn > 0 && moe.shared_experts == 0) moe.shared_experts = 1;
  moe.dense_layers = reader.integer("dense_layers", 0, kMaxLayers).value_or(0);
  moe.layer_every = reader.integer("layer_every", 1, kMaxLayers).value_or(1);
  moe.layer_list = read_layers(reader, "layer_list", model.layers);
  moe.router_bias = reader.boolean("router_bias").value_or(false);
  moe.shared_gate = reader.boolean("shared_gate").value_or(false);
  moe.capacity_factor = reader.number("capacity_factor", 0, 1024).value_or(0);
  const bool learned = reader.choice("routing", {"balanced", "learned"}).value_or(0) == 1;
  moe.imbalance = reader.number("imbalance", 1, 1024).value_or(learned ? kLearnedImbalance : 1);
  const auto dispatcher =
      reader.choice("dispatcher", {"alltoall", "allgather", "flex", "deepep", "hybridep"});
  constexpr MoeDispatcher kDispatchers[] = {MoeDispatcher::kAllToAll, MoeDispatcher::kAllGather,
                                            MoeDispatcher::kFlex, MoeDispatcher::kDeepEp,
                                            MoeDispatcher::kHybridEp};
  moe.dispatcher = kDispatchers[dispatcher.value_or(0)];
  moe.dispatcher_sms = reader.integer("dispatcher_sms", 0, kMostSms).value_or(0);
  const bool has_kernels =
      moe.dispatcher != MoeDispatcher::kAllToAll && moe.dispatcher != MoeDispatcher::kAllGather;
  if (moe.dispatcher_sms > 0 && !has_kernels) {
    reader.fail("dispatcher_sms", ErrorCode::kBadValue,
                "NCCL chooses the SMs of its exchanges itself",
                "0, or dispatcher deepep or hybridep");
  }
  read_room(reader, moe);
  moe.fused_mlp = reader.boolean("fused_mlp").value_or(false);
  reader.finish();
  model.moe = moe;
}

void read_mla(ObjectReader& reader, Model& model) {
  Mla mla;
  mla.q_lora_rank = reader.integer("q_lora_rank", 0, kMaxWidth).value_or(0);
  mla.kv_lora_rank = reader.required_integer("kv_lora_rank", 1, kMaxWidth);
  mla.qk_nope_head_dim = reader.required_integer("qk_nope_head_dim", 1, kMaxWidth);
  mla.qk_rope_head_dim = reader.required_integer("qk_rope_head_dim", 1, kMaxWidth);
  mla.v_head_dim = reader.required_integer("v_head_dim", 1, kMaxWidth);
  reader.finish();
  model.mla = mla;
}

// An object inside the model; one of another type is reported, and then not read.
std::optional<ObjectReader> section(ObjectReader& reader, const char* key) {
  const auto value = reader.value(key);
  if (!value) return std::nullopt;
  ObjectReader object(*value);
  if (!value->is_object()) return std::nullopt;
  return object;
}

// GPT's dense layers are four times as wide as the model; gated ones have no usual width.
void check_ffn(ObjectReader& reader, const Model& model) {
  const bool all_sparse = model.moe && model.moe->dense_layers == 0 && model.moe->layer_every == 1;
  if (reader.has("ffn") || model.mlp == Mlp::kGelu || all_sparse) return;
  reader.fail("ffn", ErrorCode::kMissingKey, "is required and missing",
              "a gated MLP has no usual width");
}

}  // namespace

Model read_native_model(const JsonValue& value) {
  ObjectReader reader(value);
  Model model;
  model.name = reader.text("name").value_or("custom");
  model.layers = reader.required_integer("layers", 1, kMaxLayers);
  model.hidden = reader.required_integer("hidden", 1, kMaxWidth);
  model.heads = reader.required_integer("heads", 1, kMaxHeads);
  model.vocab = reader.required_integer("vocab", 1, kMaxVocab);
  model.kv_heads = reader.integer("kv_heads", 1, kMaxHeads).value_or(model.heads);
  model.head_dim = reader.integer("head_dim", 1, kMaxWidth).value_or(0);
  read_mlp(reader, model);
  model.ffn = reader.integer("ffn", 1, kMaxWidth).value_or(4 * model.hidden);
  read_form(reader, model);
  read_traits(reader, model);
  model.max_positions_stated = reader.has("max_positions");
  model.max_positions =
      reader.integer("max_positions", 1, kMaxPositions).value_or(kDefaultPositions);
  model.dropout = reader.number("dropout", 0, 1).value_or(-1);
  read_numerics(reader, model);
  read_windows(reader, model);
  model.mtp_layers = reader.integer("mtp_layers", 0, kMaxLayers).value_or(0);
  model.vocab_multiple = reader.integer("vocab_multiple", 1, kMaxVocab).value_or(0);
  for (const char* provenance : {"source", "published", "published_parameters"}) {
    reader.ignore(provenance);
  }
  if (auto mla = section(reader, "mla")) read_mla(*mla, model);
  auto moe = section(reader, "moe");
  if (moe) read_moe(*moe, model, reader.has("ffn"));
  check_ffn(reader, model);
  reader.finish();
  complete_and_check(model, ModelKeys{}, reader, moe ? *moe : reader);
  return model;
}

}  // namespace stepcast
