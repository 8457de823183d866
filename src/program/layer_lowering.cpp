// SPDX-License-Identifier: Apache-2.0
#include "program/layer_lowering.h"

#include "layout/recomputed_layers.h"
#include "layout/scenario.h"
#include "operation/steps.h"

namespace stepcast {

LayerLowering::LayerLowering(const Scenario& scenario, LayerKind kind, BlockBuilder& builder)
    : scenario_(scenario),
      model_(scenario.model),
      shape_(builder.shape()),
      kind_(kind),
      builder_(builder) {
  if (kind.wide) {
    builder.into_fp8({});
  } else {
    attention_fp8_ = shape_.attention_fp8;
  }
  declare_attention();
  declare_mlp();
}

AttentionSpan LayerLowering::span() const {
  AttentionSpan out{.chunk = shape_.document_span, .sinks = weights_.sinks};
  if (!kind_.windowed) return out;
  const OptionalCount size{model_.attention_window};
  if (!model_.attention_chunked) {
    out.window = size;
  } else if (!out.chunk || size < out.chunk) {
    out.chunk = size;
  }
  return out;
}

std::vector<ParameterId> LayerLowering::norm_of(const char* weight, const char* bias) {
  return builder_.norm_parameters(weight, model_.norm_bias ? bias : nullptr, shape_.hidden);
}

ParameterId LayerLowering::bias_of(bool present, const char* name, std::int64_t elements, Cut cut,
                                   std::array<std::int64_t, 3> parts) {
  if (!present) return {};
  return builder_.parameter({name, elements, 1, cut, Initial::kZeros, parts});
}

void LayerLowering::declare_attention() {
  const InFp8 products(builder_, attention_fp8_);
  const std::int64_t h = shape_.hidden;
  weights_.attention_norm = norm_of("attention_norm", "attention_norm_bias");
  if (model_.mla) {
    latent_.emplace(scenario_, builder_);
  } else {
    const std::array<std::int64_t, 3> qkv{query_width(), key_width(), key_width()};
    weights_.qkv =
        Linear(builder_, {"qkv", "qkv_dgrad", "qkv_wgrad", "qkv", "attention_input_gradient"},
               {"qkv", packed_width(), h, Cut::kRows, Initial::kNormal, qkv},
               scenario_.training.lora_targets.has(AdapterTarget::kQkv));
    weights_.qkv_bias = bias_of(model_.qkv_bias, "qkv_bias", packed_width(), Cut::kRows, qkv);
    if (model_.query_key_norm || model_.wide_query_key_norm) {
      const Cut cut = model_.wide_query_key_norm ? Cut::kRows : Cut::kNone;
      const std::int64_t key = model_.wide_query_key_norm ? key_width() : shape_.head_dim;
      weights_.query_key_norm = {builder_.vector("query_norm", norm_width(), cut, Initial::kOnes),
                                 builder_.vector("key_norm", key, cut, Initial::kOnes)};
    }
    if (model_.attention_sinks > 0) {
      weights_.sinks = builder_.vector("attention_sinks", shape_.heads, Cut::kRows);
    }
  }
  weights_.attention_out =
      Linear(builder_,
             {"attention_out", "attention_out_dgrad", "attention_out_wgrad", "attention_output",
              "context_gradient"},
             {"attention_out", h, context_width(), Cut::kColumns},
             scenario_.training.lora_targets.has(AdapterTarget::kAttentionOut));
  weights_.attention_out_bias =
      bias_of(model_.attention_output_bias, "attention_out_bias", h, Cut::kNone);
  if (norms_branches()) {
    weights_.attention_post_norm = norm_of("attention_post_norm", "attention_post_norm_bias");
  }
}

void LayerLowering::declare_mlp() {
  const std::int64_t h = shape_.hidden;
  // If a parallel block has only one norm, it feeds both halves (Falcon-7B, Phi-2).
  weights_.mlp_norm =
      model_.norms_per_layer == 1 ? weights_.attention_norm : norm_of("mlp_norm", "mlp_norm_bias");
  if (kind_.experts) {
    experts_.emplace(scenario_, builder_);
  } else {
    const bool gated = model_.mlp == Mlp::kSwiglu;
    const bool adapts_mlp = scenario_.training.lora_targets.has(AdapterTarget::kMlp);
    const std::array<std::int64_t, 3> up{shape_.ffn, gated ? shape_.ffn : 0, 0};
    weights_.mlp_up =
        Linear(builder_, {"mlp_up", "mlp_up_dgrad", "mlp_up_wgrad", "up", "mlp_input_gradient"},
               {"mlp_up", up_width(), h, Cut::kRows, Initial::kNormal, up}, adapts_mlp);
    weights_.mlp_up_bias = bias_of(model_.mlp_bias, "mlp_up_bias", up_width(), Cut::kRows, up);
    weights_.mlp_down =
        Linear(builder_,
               {"mlp_down", "mlp_down_dgrad", "mlp_down_wgrad", "mlp_output", "activated_gradient"},
               {"mlp_down", h, shape_.ffn, Cut::kColumns}, adapts_mlp);
    weights_.mlp_down_bias = bias_of(model_.mlp_bias, "mlp_down_bias", h, Cut::kNone);
  }
  if (norms_branches()) weights_.mlp_post_norm = norm_of("mlp_post_norm", "mlp_post_norm_bias");
}

// branch (+ bias) (dropped) + residual, as one fused kernel.
BufferId LayerLowering::add_residual(const char* name, BufferId branch, BufferId residual,
                                     ParameterId bias, BufferId& mask) {
  const std::int64_t elements = shape_.rows * shape_.hidden;
  const BufferId sum = builder_.activation(name, elements);
  const Steps steps = residual_steps(shape_.dropout, element());
  if (shape_.dropout) {
    mask = builder_.buffer("dropout_mask", elements, DataType::kInt8);
    const KernelSize size = steps.of(builder_.size(elements, shape_.hidden, 3 * element() + 1));
    builder_.add(name, ResidualAdd{false, bias.valid(), true, shape_.type, size},
                 {branch, residual}, {sum, mask});
  } else {
    const KernelSize size = steps.of(builder_.size(elements, shape_.hidden, 3 * element()));
    builder_.add(name, ResidualAdd{false, bias.valid(), false, shape_.type, size},
                 {branch, residual}, {sum});
  }
  builder_.uses({bias});
  return sum;
}

BufferId LayerLowering::residual_backward(BufferId gradient, BufferId mask, ParameterId bias) {
  const std::int64_t elements = shape_.rows * shape_.hidden;
  BufferId branch = gradient;
  if (shape_.dropout) {
    branch = builder_.activation("branch_gradient", elements);
    builder_.add("dropout",
                 Dropout{true, shape_.type, builder_.size(elements, 0, 2 * element() + 1)},
                 {gradient, mask}, {branch});
  }
  if (bias.valid()) builder_.bias_gradient(bias, shape_.rows, shape_.hidden, {branch});
  return branch;
}

BufferId LayerLowering::forward(BufferId input, RecomputeMode mode) {
  const RecomputedModules again = recomputed_modules(scenario_.layout.recompute, mode);
  const bool operations = again.has(RecomputedModule::kOperations);
  if (latent_) latent_->cast_input_again(makes_norm_again(attention_fp8_, again));
  if (experts_) {
    const bool whole =
        again.has(RecomputedModule::kExperts) || again.has(RecomputedModule::kSharedExperts);
    experts_->cast_input_again(!whole && makes_norm_again(builder_.fp8(), again));
  }
  keeps_ = mode != RecomputeMode::kFull && !operations;
  kept_ = operations ? KeptProducts::every_second(bool{builder_.fp8()}) : KeptProducts();
  attended_ = attention(input);
  fed_ = mlp(attended_);
  return fed_.output;
}

// A norm that is a module of its own, before products in fp8; its recomputation is not made for
// scales that earlier steps have told (Megatron-LM, core/transformer/transformer_config.py).
bool LayerLowering::makes_norm_again(const Fp8& products, const RecomputedModules& again) {
  return again.has(RecomputedModule::kLayerNorm) && products &&
         !products.recipe->knows_scale_before();
}

BufferId LayerLowering::leave(const char* name, BufferId partial, std::int64_t number) {
  const bool stays = kept_.chooses() && kept_.has(number);
  const bool summed = shape_.tp > 1 && !shape_.sequence_parallel;
  if (!stays || !summed) return builder_.leave_region(name, partial);
  const std::int64_t elements = shape_.tokens * shape_.hidden;
  const BufferId sum = builder_.activation(name, elements);
  builder_.collective(name, CollectiveKind::kAllReduce, AxisGroup::kTensor, elements, shape_.type,
                      {partial}, {sum});
  return sum;
}

// Remakes what torchtitan_op drops. A compiled graph holds what backward reads and no more; eager
// autograd runs a dropped product again, even if its follower was kept, and keeps the last.
void LayerLowering::recompute_operations() {
  keeps_ = true;
  builder_.into(Pass::kInputGradient, Phase::kRecompute);
  project_again(attended_);
  enter_mlp(fed_, attended_);
  if (experts_) {
    const bool runs_on = !scenario_.training.early_stop || norms_branches();
    fed_.branch = experts_->make_again(fed_.normed, runs_on);
  } else {
    feed_again(fed_);
  }
  builder_.into_input_gradients();
}

void LayerLowering::recompute() {
  builder_.into(Pass::kInputGradient, Phase::kRecompute);
  forward(attended_.input);
}

BufferId LayerLowering::backward(BufferId gradient, RecomputeMode mode) {
  const RecomputedModules again = recomputed_modules(scenario_.layout.recompute, mode);
  if (again.has(RecomputedModule::kOperations)) recompute_operations();
  const BufferId middle = mlp_backward(fed_, gradient, again);
  const BufferId attended_gradient = model_.parallel_block ? gradient : middle;
  return attention_backward(attended_, attended_gradient, middle, again);
}

}  // namespace stepcast
