// SPDX-License-Identifier: Apache-2.0
// Models: those that ship, native objects with every trait, and configurations of Hugging Face's
// families. Most are small, so that many scenarios take little time.
#include "core/json.h"
#include "generate/legal_scenario.h"
#include "generate/sketch.h"
#include "layout/data_folders.h"
#include "model/import_model.h"

namespace stepcast::generate {
namespace {

using nlohmann::json;

std::int64_t layers_of(Draw& draw) {
  if (draw.chance(0.1)) return draw.number({16, 24, 32, 48});
  return draw.number({1, 2, 3, 4, 4, 5, 6, 8, 8, 12});
}

void draw_experts(Draw& draw, std::int64_t layers, json& model) {
  const std::int64_t experts = draw.number({2, 4, 8, 16, 60, 64});
  json moe = {{"experts", experts},
              {"top_k", std::min(experts, draw.number({1, 2, 2, 4, 6}))},
              {"ffn", draw.number({64, 128, 512, 1408})}};
  const auto add = [&](double chance, const char* key, json value) {
    if (draw.chance(chance)) moe[key] = std::move(value);
  };
  add(0.7, "dispatcher", draw.word({"allgather", "alltoall", "flex", "deepep", "hybridep"}));
  add(0.4, "shared_experts", draw.number({0, 1, 2}));
  add(0.2, "shared_ffn", draw.number({64, 256, 1024}));
  add(0.4, "dense_layers", draw.below(layers));
  add(0.2, "layer_every", 1 + draw.below(layers));
  add(0.3, "capacity_factor", draw.chance(0.5) ? 1.25 : 0.5);
  add(0.4, "imbalance", 1 + 0.25 * static_cast<double>(draw.below(6)));
  add(0.3, "router_bias", true);
  add(0.2, "shared_gate", true);
  // The fullest rank receives 2.25 times the mean at most.
  const bool hybrid = moe.contains("dispatcher") && moe["dispatcher"] == "hybridep";
  if (hybrid && !moe.contains("capacity_factor")) add(0.6, "rank_capacity_factor", 3);
  if (draw.chance(0.15)) {
    json list = json::array();
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      if (draw.chance(0.5)) list.push_back(layer);
    }
    if (!list.empty()) moe["layer_list"] = std::move(list);
  }
  model["moe"] = std::move(moe);
}

void draw_latent(Draw& draw, json& model) {
  model["mla"] = {{"kv_lora_rank", draw.number({32, 64, 512})},
                  {"qk_nope_head_dim", draw.number({16, 64, 128})},
                  {"qk_rope_head_dim", draw.number({16, 32, 64})},
                  {"v_head_dim", draw.number({16, 64, 128})}};
  if (draw.chance(0.6)) model["mla"]["q_lora_rank"] = draw.number({0, 64, 1536});
  model.erase("kv_heads");
  model.erase("head_dim");
}

void draw_window(Draw& draw, std::int64_t layers, json& model) {
  model["attention_window"] = draw.number({0, 32, 128, 1024, 4096});
  if (draw.chance(0.4)) model["attention_window_every"] = draw.number({1, 2, 3, 6});
  if (draw.chance(0.3)) model["attention_chunked"] = true;
  if (!draw.chance(0.2)) return;
  json list = json::array();
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    if (draw.chance(0.5)) list.push_back(layer);
  }
  if (!list.empty()) model["window_layers"] = std::move(list);
}

// Single families have these traits beyond GPT's form and Llama's.
void draw_traits(Draw& draw, json& model) {
  for (const char* flag :
       {"biases", "tied_embeddings", "qkv_bias", "attention_output_bias", "mlp_bias", "norm_bias",
        "head_bias", "parallel_block", "embedding_norm", "final_norm"}) {
    if (draw.chance(0.15)) model[flag] = draw.chance(0.5);
  }
  if (draw.chance(0.15)) {
    model[draw.chance(0.5) ? "query_key_norm" : "wide_query_key_norm"] = true;
  }
  if (draw.chance(0.1)) model["norms_per_layer"] = draw.number({1, 2, 3, 4});
  if (draw.chance(0.1)) model["position_offset"] = draw.number({0, 2});
  if (draw.chance(0.1)) model["attention_sinks"] = draw.number({0, 1});
  if (draw.chance(0.1)) model["embedding_width"] = draw.number({64, 512});
  if (draw.chance(0.3)) model["dropout"] = draw.chance(0.5) ? 0.0 : 0.1;
  if (draw.chance(0.3)) model["vocab_multiple"] = draw.number({1, 64, 256});
}

json native_model(Draw& draw) {
  const std::int64_t layers = layers_of(draw), heads = draw.number({1, 2, 4, 8, 8, 12, 16, 32});
  const std::int64_t head_dim = draw.number({16, 32, 64, 64, 128});
  json out = {{"layers", layers},
              {"hidden", heads * head_dim},
              {"heads", heads},
              {"ffn", draw.number({1, 2, 4, 8, 16, 43}) * 64},
              {"vocab", draw.number({97, 1024, 32000, 50257, 128256})}};
  if (draw.chance(0.5)) out["kv_heads"] = draw.divisor(heads, heads);
  if (draw.chance(0.2)) out["head_dim"] = draw.number({32, 64, 128});
  if (draw.chance(0.5)) out["name"] = draw.word({"alpha", "beta 2", "it's", "\xc3\xa9t\xc3\xa9"});
  if (draw.chance(0.7)) out["max_positions"] = draw.number({512, 2048, 4096, 32768});
  if (draw.chance(0.8)) out["mlp"] = draw.word({"gelu", "swiglu", "relu", "squared_relu", "geglu"});
  if (draw.chance(0.5)) out["norm"] = draw.word({"layernorm", "rmsnorm"});
  if (draw.chance(0.6)) out["position"] = draw.word({"learned", "rope", "alibi", "none"});
  draw_traits(draw, out);
  if (draw.chance(0.3)) draw_experts(draw, layers, out);
  if (draw.chance(0.15)) draw_latent(draw, out);
  if (draw.chance(0.15)) draw_window(draw, layers, out);
  if (draw.chance(0.12)) out["mtp_layers"] = draw.number({0, 1, 1, 2});
  return out;
}

// The keys that all families read, in a small size, and those of experts and latent attention,
// which others pass over.
json hugging_face_model(Draw& draw) {
  static const std::vector<std::string> families = supported_families();
  const std::int64_t heads = draw.number({2, 4, 8, 16}), layers = draw.number({2, 4, 6, 8});
  const std::int64_t head_dim = draw.number({32, 64});
  json out = {{"model_type", draw.of(families)},
              {"num_hidden_layers", layers},
              {"hidden_size", heads * head_dim},
              {"num_attention_heads", heads},
              {"num_key_value_heads", draw.divisor(heads, heads)},
              {"head_dim", head_dim},
              {"intermediate_size", draw.number({4, 8, 11}) * 64},
              {"vocab_size", draw.number({1000, 32000, 50257})},
              {"max_position_embeddings", draw.number({1024, 4096})},
              {"num_experts", 8},
              {"num_experts_per_tok", draw.number({1, 2})},
              {"moe_intermediate_size", 128},
              {"shared_expert_intermediate_size", draw.number({0, 256})},
              {"kv_lora_rank", 64},
              {"q_lora_rank", draw.number({0, 128})},
              {"qk_nope_head_dim", 32},
              {"qk_rope_head_dim", 16},
              {"v_head_dim", 32},
              {"first_k_dense_replace", draw.number({0, 1})},
              {"n_shared_experts", draw.number({0, 1, 2})},
              {"sliding_window", draw.number({64, 2048})}};
  if (draw.chance(0.3)) out["tie_word_embeddings"] = draw.chance(0.5);
  if (draw.chance(0.2)) out["name"] = "a config";
  if (draw.chance(0.1)) out["num_nextn_predict_layers"] = 1;
  if (draw.chance(0.1)) out = {{"model_type", out["model_type"]}, {"text_config", out}};
  return out;
}

std::string shipped_model(Draw& draw) {
  static const std::vector<ModelEntry> all = list_models(source_folders().models).value();
  return draw.of(all).name;
}

}  // namespace

bool draw_model(Draw& draw, Sketch& sketch) {
  const double form = draw.uniform();
  const std::string models = source_folders().models;
  if (form < 0.15) {
    const std::string name = shipped_model(draw);
    sketch.file["model"] = name;
    auto found = find_model(name, models);
    if (found) sketch.model = std::move(*found);
    return found.has_value();
  }
  sketch.file["model"] = form < 0.3 ? hugging_face_model(draw) : native_model(draw);
  const auto document = std::move(*JsonDocument::parse(sketch.file["model"].dump(), "drawn.json"));
  sketch.model = read_model(document->root());
  std::optional<Moe>& moe = sketch.model.moe;
  const bool fusible =
      moe && sketch.model.mlp == Mlp::kSwiglu && sketch.file["model"].contains("moe");
  sketch.fuses_experts = fusible && draw.chance(0.45);
  if (sketch.fuses_experts && moe->capacity_factor == 0 && draw.chance(0.8)) {
    moe->dispatcher = MoeDispatcher::kHybridEp;
    sketch.file["model"]["moe"]["dispatcher"] = "hybridep";
  }
  return document->ok();
}

}  // namespace stepcast::generate
