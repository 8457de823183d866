// SPDX-License-Identifier: Apache-2.0
// Describes a transformer independently of how it is trained: shapes, not layouts.
// Units: counts of elements. `layers` counts decoder blocks without embedding and head.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/adapter_targets.h"

namespace stepcast {

enum class Mlp { kGelu, kSwiglu };  // kGelu: two matrices; kSwiglu: three (any gated activation)
enum class Norm { kLayerNorm, kRmsNorm };
enum class Position { kLearned, kRope, kAlibi, kNone };
// Megatron's words, and the two back ends of its flex dispatcher by name.
enum class MoeDispatcher { kAllToAll, kAllGather, kFlex, kDeepEp, kHybridEp };

struct Moe {
  std::int64_t experts = 0;
  std::int64_t top_k = 1;
  std::int64_t ffn = 0;             // width of one routed expert
  std::int64_t shared_experts = 0;  // always active
  std::int64_t shared_ffn = 0;      // width of all shared experts together
  std::int64_t dense_layers = 0;    // the first layers that keep a dense MLP
  std::int64_t layer_every = 1;     // one layer in so many is MoE: the last of each group
  bool router_bias = false;         // a bias per expert (DeepSeek-V3's correction counts)
  bool shared_gate = false;         // a scalar gate on the shared expert (Qwen2-MoE)
  double capacity_factor = 0;       // tokens an expert takes over its fair share; 0: dropless
  double imbalance = 1;             // load of the busiest rank over the mean, before capacity
  MoeDispatcher dispatcher = MoeDispatcher::kAllToAll;
  std::int64_t dispatcher_sms = 0;  // of DeepEP's or HybridEP's kernels; 0: Megatron's default
  // Buffers have room for so many times the rows that a rank receives where all receive equally
  // many; 0: for the rows that arrive. `stash_factor`: and of what backward reads, in pages; 0: as
  // much.
  double rank_capacity_factor = 0, stash_factor = 0;
  bool fused_mlp = false;  // the first product's kernel activates and casts
  // Exactly these layers, ascending, where the file lists them.
  std::vector<std::int64_t> layer_list = {};
};

struct Mla {                     // multi-head latent attention (DeepSeek-V2, section 2.1)
  std::int64_t q_lora_rank = 0;  // 0: full-rank queries
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t v_head_dim = 0;
};

struct Model {
  std::string name;
  std::string reading;  // "X is read as Y", where it was asked for by another name
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;  // of dense layers
  std::int64_t vocab = 0;
  std::int64_t max_positions = 0;
  bool max_positions_stated = true;  // false: a default; a learned table then fits the sequence
  Mlp mlp = Mlp::kGelu;
  Norm norm = Norm::kLayerNorm;
  Position position = Position::kLearned;
  bool tied_embeddings = true;
  double dropout = -1;  // negative: the source does not say; the framework's default holds
  // These change no cost, and a launched run needs them. 0 and empty: the source does not say.
  double norm_epsilon = 0;
  double rope_base = 0;  // of rotary positions
  std::string rope_scaling =
      {};                  // for longer sequences: "llama3", "yarn", as Hugging Face names it
  double rope_factor = 0;  // by how much longer they are
  std::optional<Moe> moe;
  std::optional<Mla> mla;
  std::int64_t attention_window = 0;        // 0: full
  std::int64_t attention_window_every = 1;  // > 1: the last layer of so many attends fully
  std::vector<bool> window_layers = {};     // layer by layer, where no such period describes it
  bool attention_chunked = false;   // the window is a fixed block of tokens (Llama 4), not sliding
  std::int64_t mtp_layers = 0;      // multi-token-prediction modules
  std::int64_t vocab_multiple = 0;  // 0: as the framework pads

  // Which linear layers and norms carry what; `biases` of the native form sets them together.
  bool qkv_bias = false;
  bool attention_output_bias = false;
  bool mlp_bias = false;
  bool norm_bias = false;            // LayerNorm's shift
  bool head_bias = false;            // Phi-2 style
  bool parallel_block = false;       // attention and MLP from one input (GPT-NeoX, Falcon)
  bool embedding_norm = false;       // a norm after the embedding (BLOOM)
  bool query_key_norm = false;       // per head dim (Qwen3, Gemma 3)
  bool wide_query_key_norm = false;  // over all heads (OLMo 2)
  std::int64_t norms_per_layer = 2;  // Gemma 2 and 3: 4
  std::int64_t position_offset = 0;  // OPT: two extra rows of learned positions
  std::int64_t attention_sinks = 0;  // gpt-oss: one learned logit per head
  std::int64_t embedding_width = 0;  // OPT-350M projects; 0: hidden
  bool final_norm = true;

  std::int64_t table_width() const { return embedding_width > 0 ? embedding_width : hidden; }
  bool is_moe_layer(std::int64_t layer) const;
  bool is_windowed(std::int64_t layer) const;
};

// Exact counts of trainable elements, unpadded.
struct ParameterCount {
  std::int64_t embedding = 0;  // token and learned position tables, embedding norm
  std::int64_t head = 0;       // 0 when tied
  std::int64_t layers = 0;     // all blocks and the final norm
  std::int64_t mtp = 0;
  std::int64_t active = 0;  // without mtp; of MoE layers only the experts that a token visits
  std::int64_t total() const { return embedding + head + layers + mtp; }
};

// Elements of one layer, by what shards them.
struct LayerParameters {
  std::int64_t attention = 0;  // matrices that tensor parallelism cuts, with their biases
  std::int64_t mlp = 0;        // dense MLP or shared experts, with biases
  std::int64_t experts = 0;    // all routed experts
  std::int64_t experts_active = 0;
  std::int64_t replicated = 0;  // norms, router, row-parallel biases: whole on every TP rank
  std::int64_t total() const { return attention + mlp + experts + replicated; }
};

// How trainers put adapters beside matrices that lie together.
struct AdapterForm {
  bool packed = false;  // one for query, key and value, and one for gate and up
  // Routed experts of a layer have as many as they are, or fewer, which they share.
  std::int64_t expert_sets = 0;
};

// The elements of adapters, which are trained beside frozen linear layers: a matrix of `rank` rows
// and one of `rank` columns for each of query, key, value, output and the two or three matrices of
// the MLP that are targets, in every layer and prediction module. The target qkv of latent
// attention is its projections down and up; that of the MLP in a layer of experts is the shared
// expert and, gate and up as one matrix, the routed ones. Embedding, router and head have none
// (Hu et al. 2021, arXiv 2106.09685; on all linear layers: Dettmers et al. 2023, arXiv 2305.14314).
std::int64_t count_adapters(const Model& model, std::int64_t rank,
                            const AdapterTargets& targets = {}, const AdapterForm& form = {});

LayerParameters count_layer(const Model& model, std::int64_t layer);
ParameterCount count_parameters(const Model& model);

}  // namespace stepcast
