// SPDX-License-Identifier: Apache-2.0
// Writes a decoder layer into a block: attention and MLP, each with its norm and its place in the
// residual stream. A prediction module holds such a layer too (program/prediction_module.h).
#pragma once

#include <optional>
#include <vector>

#include "layout/recomputed_modules.h"
#include "program/core_attention.h"
#include "program/expert_layer.h"
#include "program/kept_products.h"
#include "program/latent_attention.h"
#include "program/layer_kind.h"
#include "program/linear.h"

namespace stepcast {

// The backward pass of each half reads these buffers.
struct AttentionBuffers {
  BufferId input, normed;
  LinearInput entered;  // what the projection reads
  LinearOutput packed;  // and writes; the value is a part of it
  QkvBuffers qkv;
  CoreAttentionBuffers core;
  LinearInput left;  // what the output projection reads
  LinearOutput projected;
  BufferId branch;   // before a norm of its own (Gemma 2 and 3)
  BufferId joining;  // the branch as it joins the residual stream
  BufferId mask, output;
};
struct MlpBuffers {
  BufferId input, normed, activated, branch, mask, output;
  BufferId gate;              // behind its activation, where that is a step of its own
  BufferId up_fp8;            // what the activation reads while it waits, where it does so in fp8
  LinearInput entered, left;  // what the two products read
  LinearOutput up, down;
};

struct LayerWeights {
  std::vector<ParameterId> attention_norm, attention_post_norm, mlp_norm, mlp_post_norm;
  std::vector<ParameterId> query_key_norm;  // of queries, of keys
  ParameterId sinks;                        // learned logits of attention
  Linear qkv, attention_out, mlp_up, mlp_down;
  ParameterId qkv_bias, attention_out_bias, mlp_up_bias, mlp_down_bias;
};

class LayerLowering {
 public:
  LayerLowering(const Scenario& scenario, LayerKind kind, BlockBuilder& builder);

  // `mode`: how the layer is recomputed, which says what backward reads of what is made here.
  BufferId forward(BufferId input, RecomputeMode mode = RecomputeMode::kNone);
  // Forward once more, for a backward of a layer that is recomputed whole.
  void recompute();
  // The gradient of the input, from that of the output.
  BufferId backward(BufferId gradient, RecomputeMode mode);

 private:
  std::int64_t query_width() const { return shape_.heads * shape_.head_dim; }
  std::int64_t key_width() const { return shape_.kv_heads * shape_.head_dim; }
  std::int64_t packed_width() const { return query_width() + 2 * key_width(); }
  std::int64_t context_width() const { return latent_ ? latent_->context_width() : query_width(); }
  std::int64_t up_width() const { return halves() * shape_.ffn; }
  std::int64_t norm_width() const {  // of queries and keys
    return model_.wide_query_key_norm ? query_width() : shape_.head_dim;
  }
  bool norms_branches() const { return model_.norms_per_layer == 4; }
  // The sum behind attention is part of the norm that reads it.
  bool joins_in_norm() const {
    return builder_.rules().fuses_neighbours && !shape_.dropout && !model_.parallel_block;
  }
  bool cast_sums_bias() const { return builder_.fp8() && builder_.fp8().recipe->cast_sums_bias; }
  bool rotary() const { return model_.position == Position::kRope; }
  double element() const { return static_cast<double>(shape_.element); }
  AttentionSpan span() const;

  void declare_attention();
  void declare_mlp();
  std::vector<ParameterId> norm_of(const char* weight, const char* bias);
  ParameterId bias_of(bool present, const char* name, std::int64_t elements, Cut cut,
                      std::array<std::int64_t, 3> parts = {});

  AttentionBuffers attention(BufferId input);
  void join(AttentionBuffers& out);
  CoreAttentionBuffers core(const AttentionBuffers& saved);
  QueryKeyNorm query_key_norm(bool backward) const;
  Rotary rotation(bool backward) const;
  Activation activation(bool backward, bool bias_gradient = false) const;
  void rotate(AttentionBuffers& buffers);
  BufferId rotate_backward(const AttentionBuffers& saved, BufferId gradient);
  // `gradient` is that of the half's output, `residual` what else flows into its input.
  BufferId attention_backward(AttentionBuffers& saved, BufferId gradient, BufferId residual,
                              const RecomputedModules& again);
  BufferId packed_backward(const AttentionBuffers& saved, BufferId context_gradient);
  // Normalises and transforms the output of attention, or the layer's input in a parallel block
  // (GPT-NeoX, Falcon, Phi), and adds to the output.
  MlpBuffers mlp(AttentionBuffers& attended);
  void enter_mlp(MlpBuffers& out, AttentionBuffers& attended);
  void dense(MlpBuffers& out);
  void activate(MlpBuffers& out);
  void restore_up(MlpBuffers& saved);
  static bool makes_norm_again(const Fp8& products, const RecomputedModules& again);
  BufferId mlp_backward(MlpBuffers& saved, BufferId gradient, const RecomputedModules& again);
  BufferId dense_backward(const MlpBuffers& saved, BufferId branch);
  void recompute_mlp(MlpBuffers& saved, const RecomputedModules& again);
  // Values have a projection of their own, whose output outlives those of queries and keys, which
  // are rotated.
  std::int64_t values_apart() const {
    return builder_.rules().sums_input_gradients && rotary() ? key_width() : 0;
  }
  // Products of torchtitan up to attention, of which keys are the second, and behind attention.
  std::int64_t projections() const { return latent_ ? latent_->products() : 3; }
  KeptProducts kept_behind_attention() const { return kept_.behind(projections() + 1); }
  std::int64_t halves() const { return model_.mlp == Mlp::kSwiglu ? 2 : 1; }
  std::int64_t dropped_ups() const { return kept_behind_attention().dropped(up_width(), halves()); }
  std::int64_t down_number() const { return projections() + 1 + halves() + 1; }
  bool splits_keys() const { return !latent_ && kept_.chooses() && kept_.has(1); }
  // Ends a region that tensor parallelism cuts, behind the product with this number. Where that is
  // kept, ranks that sum it leave it as it is.
  BufferId leave(const char* name, BufferId partial, std::int64_t number);
  void recompute_operations();
  void project_again(AttentionBuffers& saved);
  // Eager autograd keeps it up to the operation written last, whoever reads it.
  void hold(const LinearOutput& kept) {
    builder_.last().reads.push_back(kept.bare.valid() ? kept.bare : kept.y);
  }
  void leave_attention_again(AttentionBuffers& saved);
  void feed_again(MlpBuffers& saved);
  BufferId add_residual(const char* name, BufferId branch, BufferId residual, ParameterId bias,
                        BufferId& mask);
  BufferId residual_backward(BufferId gradient, BufferId mask, ParameterId bias);

  const Scenario& scenario_;
  const Model& model_;
  const Shape& shape_;
  LayerKind kind_;
  BlockBuilder& builder_;
  Fp8 attention_fp8_;  // of its products
  LayerWeights weights_;
  std::optional<LatentAttention> latent_;
  std::optional<ExpertLayer> experts_;
  bool keeps_ = true;  // backward reads the copies that products read
  KeptProducts kept_;
  // From the latest forward.
  AttentionBuffers attended_;
  MlpBuffers fed_;
};

}  // namespace stepcast
