// SPDX-License-Identifier: Apache-2.0
#include "layout/scenario.h"
#include "operation/steps.h"
#include "program/layer_lowering.h"
#include "program/stored_input.h"

namespace stepcast {

Activation LayerLowering::activation(bool backward, bool bias_gradient) const {
  const auto ups = static_cast<double>(halves());
  const double passes = backward ? 2 * ups + 1 : ups + 1;
  return {model_.mlp,
          backward,
          weights_.mlp_up_bias.valid(),
          bias_gradient,
          shape_.type,
          activation_steps(model_.mlp, backward, element())
              .of(builder_.size(shape_.tokens * shape_.ffn, shape_.ffn, passes * element()))};
}

// The residual stream in the middle of the layer, and its norm.
void LayerLowering::enter_mlp(MlpBuffers& out, AttentionBuffers& attended) {
  const std::int64_t h = shape_.hidden;
  if (joins_in_norm()) {
    const BlockBuilder::JoinedNorm joined =
        builder_.add_norm("mlp_norm", "attention_residual", weights_.mlp_norm, attended.joining,
                          weights_.attention_out_bias, attended.input, shape_.rows, h);
    out.input = attended.output = joined.sum;
    out.normed = joined.y;
  } else {
    out.input = model_.parallel_block ? attended.input : attended.output;
    out.normed = builder_.norm("mlp_norm", weights_.mlp_norm, out.input, shape_.rows, h);
  }
}

MlpBuffers LayerLowering::mlp(AttentionBuffers& attended) {
  const std::int64_t h = shape_.hidden;
  MlpBuffers out;
  enter_mlp(out, attended);
  if (experts_) {
    out.branch = experts_->forward(out.normed, kept_behind_attention());
  } else {
    dense(out);
    const Linear& last = weights_.mlp_down;
    out.down =
        last.forward(builder_, out.left, {}, last.split(kept_, last.dropped(kept_, down_number())));
    out.branch = leave("mlp_reduced", out.down.y, down_number());
  }
  const BufferId branch = norms_branches() ? builder_.norm("mlp_post_norm", weights_.mlp_post_norm,
                                                           out.branch, shape_.rows, h)
                                           : out.branch;
  out.output =
      add_residual("mlp_residual", branch, attended.output, weights_.mlp_down_bias, out.mask);
  return out;
}

// Up to what the second product reads.
void LayerLowering::dense(MlpBuffers& out) {
  out.entered = weights_.mlp_up.enter(builder_, "mlp_input", out.normed, keeps_);
  out.up = weights_.mlp_up.forward(builder_, out.entered, {},
                                   weights_.mlp_up.split(kept_, dropped_ups()));
  activate(out);
  if (scenario_.training.fp8_activation_input) {
    out.up_fp8 = store_in_fp8(builder_, out.up.y, shape_.tokens * up_width());
  }
}

void LayerLowering::restore_up(MlpBuffers& saved) {
  if (!saved.up_fp8.valid()) return;
  saved.up.y = restore_from_fp8(builder_, saved.up_fp8, shape_.tokens * up_width());
}

// The MLP's part of recompute_operations(). The norm behind an MLP reads its output again.
void LayerLowering::feed_again(MlpBuffers& saved) {
  const bool eager = !scenario_.training.compile, scattered = shape_.sequence_parallel;
  saved.entered = weights_.mlp_up.enter(builder_, "mlp_input", saved.normed, keeps_);
  saved.up = weights_.mlp_up.make_again(builder_, saved.entered, saved.up, {}, dropped_ups());
  activate(saved);
  const Linear& last = weights_.mlp_down;
  if (kept_.has(down_number()) && eager) hold(saved.down);
  const bool runs_on = eager && !scenario_.training.early_stop;
  const bool read = runs_on || (norms_branches() && !scattered);
  saved.down = last.make_again(builder_, saved.left, saved.down, {},
                               last.dropped(kept_, down_number()), read);
  if (read && !scattered) saved.branch = leave("mlp_reduced", saved.down.y, down_number());
}

void LayerLowering::activate(MlpBuffers& out) {
  out.activated = builder_.activation("activated", shape_.tokens * shape_.ffn);
  builder_.add("activation", activation(false), {out.up.y, out.up.apart}, {out.activated});
  if (shape_.in_steps && model_.mlp == Mlp::kSwiglu) {
    out.gate = builder_.activation("gate", shape_.tokens * shape_.ffn);
    builder_.also_writes({out.gate});
  }
  builder_.uses({weights_.mlp_up_bias});
  out.left = weights_.mlp_down.take(builder_, out.activated, keeps_);
}

void LayerLowering::recompute_mlp(MlpBuffers& saved, const RecomputedModules& again) {
  builder_.into(Pass::kInputGradient, Phase::kRecompute);
  // In fp8 the norm is part of the product behind it (TELayerNormColumnParallelLinear).
  // That of experts is a module of its own, since the router reads it too.
  const bool with_norm = !builder_.fp8() ? again.has(RecomputedModule::kLayerNorm)
                         : experts_      ? makes_norm_again(builder_.fp8(), again)
                                         : again.has(RecomputedModule::kMlp);
  if (with_norm) {
    saved.normed =
        builder_.norm("mlp_norm", weights_.mlp_norm, saved.input, shape_.rows, shape_.hidden);
    if (!experts_) saved.entered = weights_.mlp_up.renewed(saved.entered, saved.normed);
  }
  if (!experts_ && again.has(RecomputedModule::kMlp)) dense(saved);
  const bool activates =
      again.has(RecomputedModule::kMlpActivation) && !again.has(RecomputedModule::kMlp);
  if (!experts_) restore_up(saved);
  if (!experts_ && activates) activate(saved);
  builder_.into_input_gradients();
}

BufferId LayerLowering::mlp_backward(MlpBuffers& saved, BufferId gradient,
                                     const RecomputedModules& again) {
  const std::int64_t h = shape_.hidden;
  recompute_mlp(saved, again);
  BufferId branch = residual_backward(gradient, saved.mask, weights_.mlp_down_bias);
  if (norms_branches()) {
    branch = builder_.norm_backward("mlp_post_norm", weights_.mlp_post_norm, saved.branch, branch,
                                    BufferId{}, shape_.rows, h);
  }
  const BufferId reduced =
      experts_ ? experts_->backward(branch, saved.normed, again) : dense_backward(saved, branch);
  return builder_.norm_backward("mlp_norm", weights_.mlp_norm, saved.input, reduced, gradient,
                                shape_.rows, h);
}

// The gradient of the norm's output from that of the branch.
BufferId LayerLowering::dense_backward(const MlpBuffers& saved, BufferId branch) {
  const LinearInput whole =
      weights_.mlp_down.leave_backward(builder_, "mlp_output_gradient", branch);
  const LinearGradient activated = weights_.mlp_down.input_gradient(builder_, whole, saved.down);
  weights_.mlp_down.weight_gradient(builder_, whole, saved.left, saved.down, activated);
  const BufferId up = builder_.activation("up_gradient", shape_.tokens * up_width());
  const bool has_bias = weights_.mlp_up_bias.valid();
  const bool sums =
      has_bias && builder_.rules().fuses_neighbours && builder_.trains(weights_.mlp_up_bias);
  builder_.add("activation", activation(true, sums),
               {saved.up.y, saved.up.apart, saved.gate, activated.x}, {up});
  builder_.uses({weights_.mlp_up_bias});
  const LinearInput flowing = weights_.mlp_up.take_gradient(builder_, up);
  if (has_bias && !sums && !cast_sums_bias()) {
    builder_.bias_gradient(weights_.mlp_up_bias, shape_.tokens, up_width(), {up});
  }
  const LinearInput input = weights_.mlp_up.gather_again(builder_, "mlp_input", saved.entered);
  const LinearGradient partial = weights_.mlp_up.input_gradient(builder_, flowing, saved.up);
  const BufferId reduced = builder_.enter_backward("mlp_input_gradient", partial.x);
  weights_.mlp_up.weight_gradient(builder_, flowing, input, saved.up, partial);
  return reduced;
}

}  // namespace stepcast
