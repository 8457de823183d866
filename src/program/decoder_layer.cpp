// SPDX-License-Identifier: Apache-2.0
#include "program/decoder_layer.h"

#include "program/block_builder.h"
#include "program/core_attention.h"
#include "program/liveness.h"

namespace stepcast {
namespace {

// What the backward pass of each half reads.
struct AttentionBuffers {
  BufferId input, normed, packed;  // packed: the projection's output, which the value is a part of
  QkvBuffers qkv;
  CoreAttentionBuffers core;
  BufferId branch;  // before a norm of its own (Gemma 2 and 3)
  BufferId mask, output;
};
struct MlpBuffers {
  BufferId input, normed, up, activated, branch, mask, output;
};

class LayerLowering {
 public:
  LayerLowering(const Scenario& scenario, Block& block)
      : scenario_(scenario),
        model_(scenario.model),
        shape_(scenario),
        builder_(shape_, gradient_mode(scenario), block) {}

  void lower(RecomputeMode recompute);
  BlockParameters parameters() const;

 private:
  std::int64_t query_width() const { return shape_.heads * shape_.head_dim; }
  std::int64_t key_width() const { return shape_.kv_heads * shape_.head_dim; }
  std::int64_t packed_width() const { return query_width() + 2 * key_width(); }
  std::int64_t up_width() const { return (model_.mlp == Mlp::kSwiglu ? 2 : 1) * shape_.ffn; }
  std::int64_t norm_width() const {  // of queries and keys
    return model_.wide_query_key_norm ? query_width() : shape_.head_dim;
  }
  bool norms_branches() const { return model_.norms_per_layer == 4; }
  bool rotary() const { return model_.position == Position::kRope; }
  double element() const { return static_cast<double>(shape_.element); }

  AttentionBuffers attention(BufferId input);
  CoreAttentionBuffers core(const AttentionBuffers& saved) {
    return core_attention(builder_, scenario_.training.attention, saved.qkv);
  }
  void rotate(AttentionBuffers& buffers);
  // `gradient` of the half's output; `residual` what else flows into its input.
  BufferId attention_backward(const AttentionBuffers& saved, BufferId gradient, BufferId residual);
  // Normalises and transforms `input`, adds to `residual`: the same, but in parallel blocks.
  MlpBuffers mlp(BufferId input, BufferId residual);
  BufferId mlp_backward(const MlpBuffers& saved, BufferId gradient);
  BufferId rotate_backward(const AttentionBuffers& saved, BufferId gradient);
  BufferId add_residual(const char* name, BufferId branch, BufferId residual, bool bias,
                        BufferId& mask);
  BufferId residual_backward(BufferId gradient, BufferId mask, bool bias);

  const Scenario& scenario_;
  const Model& model_;
  Shape shape_;
  BlockBuilder builder_;
};

BlockParameters LayerLowering::parameters() const {
  const std::int64_t h = shape_.hidden;
  const std::int64_t norm = h * (model_.norm_bias ? 2 : 1);
  BlockParameters out;
  out.sharded = h * packed_width() + query_width() * h + h * up_width() + shape_.ffn * h;
  if (model_.qkv_bias) out.sharded += packed_width();
  if (model_.mlp_bias) out.sharded += up_width();
  out.replicated = model_.norms_per_layer * norm;
  if (model_.attention_output_bias) out.replicated += h;
  if (model_.mlp_bias) out.replicated += h;
  if (model_.query_key_norm) out.replicated += 2 * shape_.head_dim;
  if (model_.wide_query_key_norm) out.sharded += query_width() + key_width();
  out.sharded += model_.attention_sinks > 0 ? shape_.heads : 0;
  return out;
}

// branch (+ bias) (dropped) + residual, as one fused kernel.
BufferId LayerLowering::add_residual(const char* name, BufferId branch, BufferId residual,
                                     bool bias, BufferId& mask) {
  const std::int64_t elements = shape_.rows * shape_.hidden;
  const BufferId sum = builder_.activation(name, elements);
  const std::int64_t launches = 1 + (bias ? 1 : 0) + (shape_.dropout ? 1 : 0);
  if (shape_.dropout) {
    mask = builder_.buffer("dropout_mask", elements, DataType::kInt8);
    builder_.elementwise(name, ElementwiseKind::kDropoutAdd, elements, 0, 3 * element() + 1,
                         {branch, residual}, {sum, mask}, false, launches);
  } else {
    builder_.elementwise(name, ElementwiseKind::kDropoutAdd, elements, 0, 3 * element(),
                         {branch, residual}, {sum}, false, launches);
  }
  return sum;
}

BufferId LayerLowering::residual_backward(BufferId gradient, BufferId mask, bool bias) {
  const std::int64_t elements = shape_.rows * shape_.hidden;
  BufferId branch = gradient;
  if (shape_.dropout) {
    branch = builder_.activation("branch_gradient", elements);
    builder_.elementwise("dropout", ElementwiseKind::kDropoutAdd, elements, 0, 2 * element() + 1,
                         {gradient, mask}, {branch}, true);
  }
  if (bias) builder_.bias_gradient(shape_.rows, shape_.hidden, {branch});
  return branch;
}

void LayerLowering::rotate(AttentionBuffers& buffers) {
  buffers.qkv = {buffers.packed, buffers.packed, buffers.packed};
  const bool normed = model_.query_key_norm || model_.wide_query_key_norm;
  if (!rotary() && !normed) return;
  // The value stays a view of the packed projection, which therefore lives as long as it does.
  const std::int64_t query = shape_.tokens * query_width(), key = shape_.tokens * key_width();
  if (normed) {
    buffers.qkv.query = builder_.activation("query_normed", query);
    buffers.qkv.key = builder_.activation("key_normed", key);
    builder_.elementwise("query_key_norm", ElementwiseKind::kNorm, query + key, norm_width(),
                         2 * element(), {buffers.packed}, {buffers.qkv.query, buffers.qkv.key},
                         false, 2);
  }
  if (rotary()) {
    const QkvBuffers before = buffers.qkv;
    buffers.qkv.query = builder_.activation("query", query);
    buffers.qkv.key = builder_.activation("key", key);
    builder_.elementwise("rotary", ElementwiseKind::kRotary, query + key, 0, 2 * element(),
                         {before.query, before.key}, {buffers.qkv.query, buffers.qkv.key}, false,
                         2);
  }
}

BufferId LayerLowering::rotate_backward(const AttentionBuffers& saved, BufferId gradient) {
  const std::int64_t elements = shape_.tokens * (query_width() + key_width());
  if (rotary()) {
    builder_.elementwise("rotary", ElementwiseKind::kRotary, elements, 0, 2 * element(), {gradient},
                         {gradient}, true, 2);
  }
  if (model_.query_key_norm || model_.wide_query_key_norm) {
    builder_.elementwise("query_key_norm", ElementwiseKind::kNorm, elements, norm_width(),
                         3 * element(), {saved.packed, gradient}, {gradient}, true, 4);
  }
  return gradient;
}

AttentionBuffers LayerLowering::attention(BufferId input) {
  const std::int64_t h = shape_.hidden;
  AttentionBuffers out;
  out.input = input;
  out.normed = builder_.norm("attention_norm", input, shape_.rows, h);
  const BufferId gathered = builder_.enter_region("attention_input", out.normed);
  out.packed = builder_.activation("qkv", shape_.tokens * packed_width());
  builder_.gemm("qkv", GemmRole::kForward, shape_.tokens, packed_width(), h, {gathered},
                {out.packed});
  rotate(out);
  out.core = core(out);
  const BufferId partial = builder_.activation("attention_output", shape_.tokens * h);
  builder_.gemm("attention_out", GemmRole::kForward, shape_.tokens, h, query_width(),
                {out.core.context}, {partial});
  out.branch = builder_.leave_region("attention_reduced", partial);
  const BufferId branch = norms_branches()
                              ? builder_.norm("attention_post_norm", out.branch, shape_.rows, h)
                              : out.branch;
  out.output =
      add_residual("attention_residual", branch, input, model_.attention_output_bias, out.mask);
  return out;
}

BufferId LayerLowering::attention_backward(const AttentionBuffers& saved, BufferId gradient,
                                           BufferId residual) {
  const std::int64_t h = shape_.hidden;
  BufferId branch = residual_backward(gradient, saved.mask, model_.attention_output_bias);
  if (norms_branches()) {
    branch = builder_.norm_backward("attention_post_norm", saved.branch, branch, BufferId{},
                                    shape_.rows, h);
  }
  const BufferId whole = builder_.leave_backward("attention_output_gradient", branch);
  const BufferId context_gradient =
      builder_.activation("context_gradient", shape_.tokens * query_width());
  builder_.gemm("attention_out_dgrad", GemmRole::kInputGradient, shape_.tokens, query_width(), h,
                {whole}, {context_gradient});
  builder_.weight_gradient("attention_out_wgrad", h, query_width(), {whole, saved.core.context});
  BufferId packed_gradient = core_attention_backward(builder_, scenario_.training.attention,
                                                     saved.qkv, saved.core, context_gradient);
  packed_gradient = rotate_backward(saved, packed_gradient);
  if (model_.qkv_bias) builder_.bias_gradient(shape_.tokens, packed_width(), {packed_gradient});
  const BufferId input = builder_.enter_region("attention_input", saved.normed);
  const BufferId partial = builder_.activation("attention_input_gradient", shape_.tokens * h);
  builder_.gemm("qkv_dgrad", GemmRole::kInputGradient, shape_.tokens, h, packed_width(),
                {packed_gradient}, {partial});
  const BufferId reduced = builder_.enter_backward("attention_input_gradient", partial);
  builder_.weight_gradient("qkv_wgrad", packed_width(), h, {packed_gradient, input});
  return builder_.norm_backward("attention_norm", saved.input, reduced, residual, shape_.rows, h);
}

MlpBuffers LayerLowering::mlp(BufferId input, BufferId residual) {
  const std::int64_t h = shape_.hidden;
  MlpBuffers out;
  out.input = input;
  out.normed = builder_.norm("mlp_norm", input, shape_.rows, h);
  const BufferId gathered = builder_.enter_region("mlp_input", out.normed);
  out.up = builder_.activation("up", shape_.tokens * up_width());
  builder_.gemm("mlp_up", GemmRole::kForward, shape_.tokens, up_width(), h, {gathered}, {out.up});
  out.activated = builder_.activation("activated", shape_.tokens * shape_.ffn);
  const bool gated = model_.mlp == Mlp::kSwiglu;
  builder_.elementwise("activation", ElementwiseKind::kActivation, shape_.tokens * shape_.ffn, 0,
                       (gated ? 3 : 2) * element(), {out.up}, {out.activated}, false, 2);
  const BufferId partial = builder_.activation("mlp_output", shape_.tokens * h);
  builder_.gemm("mlp_down", GemmRole::kForward, shape_.tokens, h, shape_.ffn, {out.activated},
                {partial});
  out.branch = builder_.leave_region("mlp_reduced", partial);
  const BufferId branch =
      norms_branches() ? builder_.norm("mlp_post_norm", out.branch, shape_.rows, h) : out.branch;
  out.output = add_residual("mlp_residual", branch, residual, model_.mlp_bias, out.mask);
  return out;
}

BufferId LayerLowering::mlp_backward(const MlpBuffers& saved, BufferId gradient) {
  const std::int64_t h = shape_.hidden;
  BufferId branch = residual_backward(gradient, saved.mask, model_.mlp_bias);
  if (norms_branches()) {
    branch =
        builder_.norm_backward("mlp_post_norm", saved.branch, branch, BufferId{}, shape_.rows, h);
  }
  const BufferId whole = builder_.leave_backward("mlp_output_gradient", branch);
  const BufferId activated = builder_.activation("activated_gradient", shape_.tokens * shape_.ffn);
  builder_.gemm("mlp_down_dgrad", GemmRole::kInputGradient, shape_.tokens, shape_.ffn, h, {whole},
                {activated});
  builder_.weight_gradient("mlp_down_wgrad", h, shape_.ffn, {whole, saved.activated});
  const BufferId up = builder_.activation("up_gradient", shape_.tokens * up_width());
  const bool gated = model_.mlp == Mlp::kSwiglu;
  builder_.elementwise("activation", ElementwiseKind::kActivation, shape_.tokens * shape_.ffn, 0,
                       (gated ? 5 : 3) * element(), {saved.up, activated}, {up}, true, 2);
  if (model_.mlp_bias) builder_.bias_gradient(shape_.tokens, up_width(), {up});
  const BufferId input = builder_.enter_region("mlp_input", saved.normed);
  const BufferId partial = builder_.activation("mlp_input_gradient", shape_.tokens * h);
  builder_.gemm("mlp_up_dgrad", GemmRole::kInputGradient, shape_.tokens, h, up_width(), {up},
                {partial});
  const BufferId reduced = builder_.enter_backward("mlp_input_gradient", partial);
  builder_.weight_gradient("mlp_up_wgrad", up_width(), h, {up, input});
  return builder_.norm_backward("mlp_norm", saved.input, reduced, gradient, shape_.rows, h);
}

void LayerLowering::lower(RecomputeMode recompute) {
  Block& block = builder_.block();
  const std::int64_t elements = shape_.rows * shape_.hidden;
  block.input = builder_.activation("layer_input", elements);
  block.output_gradient = builder_.activation("output_gradient", elements);

  builder_.into(block.forward, Phase::kForward);
  AttentionBuffers attended = attention(block.input);
  // In a parallel block (GPT-NeoX, Falcon, Phi) both halves read the layer's input.
  const auto feed = [&] {
    return mlp(model_.parallel_block ? block.input : attended.output, attended.output);
  };
  MlpBuffers fed = feed();
  block.output = fed.output;

  if (recompute == RecomputeMode::kFull) {
    builder_.into(block.backward, Phase::kRecompute);
    attended = attention(block.input);
    fed = feed();
  }
  builder_.into(block.backward, Phase::kBackward);
  const BufferId middle = mlp_backward(fed, block.output_gradient);
  if (recompute == RecomputeMode::kSelective) {
    // The recomputed context replaces the first, which the output projection's weight gradient
    // still reads: it is kept, as core_attention's output is in the published term 34 sbh.
    builder_.into(block.backward, Phase::kRecompute);
    const BufferId kept = attended.core.context;
    attended.core = core(attended);
    attended.core.context = kept;
    builder_.into(block.backward, Phase::kBackward);
  }
  const BufferId attended_gradient = model_.parallel_block ? block.output_gradient : middle;
  block.input_gradient = attention_backward(attended, attended_gradient, middle);
}

}  // namespace

Block lower_decoder_layer(const Scenario& scenario, RecomputeMode recompute) {
  Block block;
  block.name = "layer";
  LayerLowering lowering(scenario, block);
  lowering.lower(recompute);
  block.parameters = lowering.parameters();
  trace_memory(block);
  return block;
}

}  // namespace stepcast
