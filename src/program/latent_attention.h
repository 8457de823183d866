// SPDX-License-Identifier: Apache-2.0
// Multi-head latent attention between a layer's norm and its output projection (DeepSeek-V2,
// section 2.1; megatron/core/transformer/multi_latent_attention.py): queries, and keys with values,
// from narrow latents. Tensor parallel ranks make the latents of their own tokens, whole, and share
// the heads.
#pragma once

#include "layout/recomputed_modules.h"
#include "model/model.h"
#include "program/context_attention.h"
#include "program/core_attention.h"
#include "program/kept_products.h"
#include "program/linear.h"

namespace stepcast {

struct Scenario;

class LatentAttention {
 public:
  LatentAttention(const Scenario& scenario, BlockBuilder& builder);

  // The context of every head, from the norm's output. `kept`: of its own products.
  BufferId forward(BufferId input, bool keeps, const KeptProducts& kept = {});
  // Makes again what torchtitan_op drops: all but those and the context.
  void make_again(BufferId input);
  std::int64_t products() const { return has_query_latent() ? 4 : 3; }
  // The gradient of `input`.
  BufferId backward(BufferId context_gradient, BufferId input, const RecomputedModules& again);
  // Elements of a token's context on this rank.
  std::int64_t context_width() const { return heads() * mla_.v_head_dim; }
  // The norm before is made again, so that in fp8 no copy of its output is kept.
  void cast_input_again(bool again) {
    (has_query_latent() ? query_down_ : query_up_).cast_input_again(again);
    key_value_down_.cast_input_again(again);
  }

 private:
  struct Saved {
    LinearOutput query_down, query_up, key_value_down, key_value_up;
    BufferId query_latent, key_latent;         // behind their norms
    LinearInput query_input, key_value_input;  // what the products to them read
    LinearInput gathered_query, gathered_key;  // and those from them, of all tokens
    BufferId rotary_key;                       // of all tokens
    QkvBuffers qkv, read;                      // by attention: those, or a copy in fp8
    CoreAttentionBuffers core;
  };

  // In the order in which torchtitan runs them (models/deepseek_v3/model.py): queries first.
  enum class Product { kQueryDown, kQueryUp, kKeyValueDown, kKeyValueUp };
  std::int64_t number(Product product) const {
    return static_cast<std::int64_t>(product) + (has_query_latent() ? 1 : 0);
  }
  // `saved` itself where torchtitan_op has kept it.
  LinearOutput multiply(Product product, const Linear& linear, const LinearInput& input,
                        const LinearOutput& saved, ParameterId bias = {});
  void make_latents(BufferId input);
  void norm_latents();
  void make_heads(BufferId input);
  void read_heads();
  void attend();
  QkvBuffers attend_backward(BufferId context_gradient);
  BufferId query_backward(BufferId gradient);
  BufferId key_value_backward(BufferId gradient, BufferId rotary_gradient);

  std::int64_t heads() const { return builder_.shape().heads; }
  std::int64_t key_width() const { return mla_.qk_nope_head_dim + mla_.qk_rope_head_dim; }
  std::int64_t up_width() const { return mla_.qk_nope_head_dim + mla_.v_head_dim; }
  bool has_query_latent() const { return mla_.q_lora_rank > 0; }
  Attention attention(bool backward) const;
  ContextHeads context_heads() const {
    return {
        heads(), heads(), key_width(), mla_.v_head_dim, {.chunk = builder_.shape().document_span}};
  }
  void read_again();
  LatentRotary rotation(bool backward) const;
  BufferId of_heads(const char* name, std::int64_t width);

  AttentionSizes sizes() const;
  bool unfused() const;

  const Scenario& scenario_;
  const Model& model_;
  const Mla& mla_;
  BlockBuilder& builder_;
  Linear query_down_, query_up_, key_value_down_, key_value_up_;
  ParameterId query_bias_, key_value_bias_;
  std::vector<ParameterId> query_norm_, key_value_norm_;
  bool keeps_ = true;   // the backward reads what forward makes
  bool again_ = false;  // operations are made again
  KeptProducts kept_;
  Saved saved_;
};

}  // namespace stepcast
