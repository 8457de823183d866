// SPDX-License-Identifier: Apache-2.0
#include "layout/scenario.h"
#include "operation/steps.h"
#include "program/layer_lowering.h"

namespace stepcast {

CoreAttentionBuffers LayerLowering::core(const AttentionBuffers& saved) {
  return core_attention(builder_, scenario_.training.attention, saved.qkv, span());
}

QueryKeyNorm LayerLowering::query_key_norm(bool backward) const {
  const std::int64_t query = query_width(), key = key_width();
  const double passes = backward ? 3 : 2;
  Steps steps = norm_steps(Norm::kRmsNorm, backward, element());
  steps.launches *= 2;  // queries and keys apart
  const KernelSize size =
      steps.of(builder_.size(shape_.tokens * (query + key), query + key, passes * element()));
  return {backward,
          query,
          key,
          norm_width(),
          model_.wide_query_key_norm ? key : shape_.head_dim,
          shape_.type,
          builder_.gradient_type(),
          size};
}

Rotary LayerLowering::rotation(bool backward) const {
  const std::int64_t width = query_width() + key_width();
  Steps steps = rotary_steps(element());
  steps.launches *= 2;  // queries and keys apart
  const KernelSize size = steps.of(builder_.size(shape_.tokens * width, width, 2 * element()));
  return {backward,        shape_.sequence, shape_.heads, shape_.kv_heads,
          shape_.head_dim, shape_.type,     size};
}

void LayerLowering::rotate(AttentionBuffers& buffers) {
  const BufferId packed = buffers.packed.y, apart = buffers.packed.apart;
  const BufferId keys = splits_keys() ? apart : BufferId{};
  buffers.qkv = {packed, packed, apart.valid() ? apart : packed};
  if (keys.valid()) buffers.qkv = {packed, keys, buffers.packed.last};
  const bool normed = model_.query_key_norm || model_.wide_query_key_norm;
  if (!rotary() && !normed) return;
  // The value stays a view of the packed projection, which therefore lives as long as it does.
  const std::int64_t query = shape_.tokens * query_width(), key = shape_.tokens * key_width();
  if (normed) {
    buffers.qkv.query = builder_.activation("query_normed", query);
    buffers.qkv.key = builder_.activation("key_normed", key);
    builder_.add("query_key_norm", query_key_norm(false), {packed, keys},
                 {buffers.qkv.query, buffers.qkv.key});
    builder_.uses(weights_.query_key_norm);
  }
  if (rotary()) {
    const QkvBuffers before = buffers.qkv;
    buffers.qkv.query = builder_.activation("query", query);
    buffers.qkv.key = builder_.activation("key", key);
    builder_.add("rotary", rotation(false), {before.query, before.key},
                 {buffers.qkv.query, buffers.qkv.key});
  }
}

BufferId LayerLowering::rotate_backward(const AttentionBuffers& saved, BufferId gradient) {
  if (rotary()) builder_.add("rotary", rotation(true), {gradient}, {gradient});
  if (model_.query_key_norm || model_.wide_query_key_norm) {
    builder_.add("query_key_norm", query_key_norm(true),
                 {saved.packed.y, splits_keys() ? saved.packed.apart : BufferId{}, gradient},
                 {gradient});
    builder_.uses(weights_.query_key_norm);
  }
  return gradient;
}

AttentionBuffers LayerLowering::attention(BufferId input) {
  const InPart part(builder_, GraphPart::kAttention);
  const InFp8 products(builder_, attention_fp8_);
  const std::int64_t h = shape_.hidden;
  AttentionBuffers out;
  out.input = input;
  out.normed = builder_.norm("attention_norm", weights_.attention_norm, input, shape_.rows, h);
  if (latent_) {
    out.core.context = latent_->forward(out.normed, keeps_, kept_);
  } else {
    out.entered = weights_.qkv.enter(builder_, "attention_input", out.normed, keeps_);
    const OutputSplit split = splits_keys() ? weights_.qkv.split(kept_, key_width(), key_width())
                                            : OutputSplit{.apart = values_apart()};
    out.packed = weights_.qkv.forward(builder_, out.entered, weights_.qkv_bias, split);
    rotate(out);
    out.core = core(out);
  }
  out.left = weights_.attention_out.take(builder_, out.core.context, keeps_);
  const Linear& last = weights_.attention_out;
  out.projected = last.forward(builder_, out.left, {},
                               last.split(kept_, last.dropped(kept_, projections() + 1)));
  out.branch = leave("attention_reduced", out.projected.y, projections() + 1);
  join(out);
  return out;
}

// The branch joins the residual stream, if it does so before the next norm.
void LayerLowering::join(AttentionBuffers& out) {
  out.joining = norms_branches()
                    ? builder_.norm("attention_post_norm", weights_.attention_post_norm, out.branch,
                                    shape_.rows, shape_.hidden)
                    : out.branch;
  if (joins_in_norm()) return;
  out.output = add_residual("attention_residual", out.joining, out.input,
                            weights_.attention_out_bias, out.mask);
}

// The attention half of recompute_operations(): what fused attention gave is kept.
void LayerLowering::project_again(AttentionBuffers& saved) {
  const InPart part(builder_, GraphPart::kAttention);
  const InFp8 products(builder_, attention_fp8_);
  saved.normed = builder_.norm("attention_norm", weights_.attention_norm, saved.input, shape_.rows,
                               shape_.hidden);
  if (latent_) {
    latent_->make_again(saved.normed);
    return leave_attention_again(saved);
  }
  saved.entered = weights_.qkv.enter(builder_, "attention_input", saved.normed, keeps_);
  saved.packed = weights_.qkv.make_again(builder_, saved.entered, saved.packed, weights_.qkv_bias,
                                         splits_keys() ? key_width() : packed_width());
  rotate(saved);
  // Copies in fp8 and what a ring exchanged are kept with the context.
  if (!shape_.fp8_attention) {
    const bool own = shape_.cp == 1 || shape_.cp_method == ContextMethod::kAllGather;
    if (own) saved.core.read = saved.qkv;
    if (shape_.cp > 1 && shape_.cp_exchange == 1) saved.core.read.query = saved.qkv.query;
  }
  leave_attention_again(saved);
}

// Up to the sum with the residual stream.
void LayerLowering::leave_attention_again(AttentionBuffers& saved) {
  const bool compiled = scenario_.training.compile;
  saved.left = weights_.attention_out.take(builder_, saved.core.context, keeps_);
  if (model_.parallel_block && compiled) return;    // nobody reads the sum
  const bool scattered = shape_.sequence_parallel;  // it is kept then
  const std::int64_t number = projections() + 1;
  const Linear& last = weights_.attention_out;
  if (kept_.has(number) && !compiled) hold(saved.projected);
  saved.projected = last.make_again(builder_, saved.left, saved.projected, {},
                                    last.dropped(kept_, number), !scattered || !compiled);
  if (!scattered) saved.branch = leave("attention_reduced", saved.projected.y, number);
  join(saved);
}

// The gradient of the norm's output from that of the context.
BufferId LayerLowering::packed_backward(const AttentionBuffers& saved, BufferId context_gradient) {
  BufferId packed_gradient = core_attention_backward(
      builder_, scenario_.training.attention, saved.qkv, saved.core, context_gradient, span());
  packed_gradient = rotate_backward(saved, packed_gradient);
  const LinearInput packed = weights_.qkv.take_gradient(builder_, packed_gradient);
  if (weights_.qkv_bias.valid() && !cast_sums_bias()) {
    builder_.bias_gradient(weights_.qkv_bias, shape_.tokens, packed_width(), {packed_gradient});
  }
  const LinearInput input = weights_.qkv.gather_again(builder_, "attention_input", saved.entered);
  const LinearGradient partial = weights_.qkv.input_gradient(builder_, packed, saved.packed);
  const BufferId reduced = builder_.enter_backward("attention_input_gradient", partial.x);
  weights_.qkv.weight_gradient(builder_, packed, input, saved.packed, partial);
  return reduced;
}

BufferId LayerLowering::attention_backward(AttentionBuffers& saved, BufferId gradient,
                                           BufferId residual, const RecomputedModules& again) {
  const std::int64_t h = shape_.hidden;
  const BufferId first_context = saved.core.context;
  builder_.into(Pass::kInputGradient, Phase::kRecompute);
  if (again.has(RecomputedModule::kCoreAttention) && !latent_) {
    // The recomputed context replaces the first, which the output projection's weight gradient
    // still reads: it is kept, as core_attention's output is in the published term 34 sbh.
    saved.core = core(saved);
    saved.core.context = first_context;
  }
  const bool apart = latent_ && makes_norm_again(attention_fp8_, again);
  if (apart || (again.has(RecomputedModule::kLayerNorm) && !attention_fp8_)) {
    saved.normed =
        builder_.norm("attention_norm", weights_.attention_norm, saved.input, shape_.rows, h);
    if (!latent_) saved.entered = weights_.qkv.renewed(saved.entered, saved.normed);
  }
  builder_.into_input_gradients();
  const InPart part(builder_, GraphPart::kAttention);
  const InFp8 products(builder_, attention_fp8_);
  BufferId branch = residual_backward(gradient, saved.mask, weights_.attention_out_bias);
  if (norms_branches()) {
    branch = builder_.norm_backward("attention_post_norm", weights_.attention_post_norm,
                                    saved.branch, branch, BufferId{}, shape_.rows, h);
  }
  const LinearInput whole =
      weights_.attention_out.leave_backward(builder_, "attention_output_gradient", branch);
  const LinearGradient context =
      weights_.attention_out.input_gradient(builder_, whole, saved.projected);
  weights_.attention_out.weight_gradient(builder_, whole, saved.left, saved.projected, context);
  const BufferId reduced = latent_ ? latent_->backward(context.x, saved.normed, again)
                                   : packed_backward(saved, context.x);
  return builder_.norm_backward("attention_norm", weights_.attention_norm, saved.input, reduced,
                                residual, shape_.rows, h);
}

}  // namespace stepcast
