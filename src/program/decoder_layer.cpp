// SPDX-License-Identifier: Apache-2.0
#include "program/decoder_layer.h"

#include "operation/steps.h"
#include "program/block_builder.h"
#include "program/core_attention.h"
#include "program/linear.h"
#include "program/liveness.h"
#include "program/unit_copies.h"

namespace stepcast {
namespace {

// What the backward pass of each half reads.
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
  LinearInput entered, left;  // what the two products read
  LinearOutput up, down;
};

struct LayerWeights {
  std::vector<ParameterId> attention_norm, attention_post_norm, mlp_norm, mlp_post_norm;
  std::vector<ParameterId> query_key_norm;  // of queries, of keys
  Linear qkv, attention_out, mlp_up, mlp_down;
  ParameterId qkv_bias, attention_out_bias, mlp_up_bias, mlp_down_bias;
};

// While it lives, operations belong to the attention half.
class InAttention {
 public:
  explicit InAttention(BlockBuilder& builder) : builder_(builder) { builder_.in_attention(true); }
  ~InAttention() { builder_.in_attention(false); }
  InAttention(const InAttention&) = delete;
  InAttention& operator=(const InAttention&) = delete;

 private:
  BlockBuilder& builder_;
};

class LayerLowering {
 public:
  LayerLowering(const Scenario& scenario, Block& block)
      : scenario_(scenario),
        model_(scenario.model),
        shape_(scenario),
        builder_(shape_, gradient_mode(scenario), block) {
    declare_parameters();
  }

  void lower(RecomputeMode recompute);

 private:
  std::int64_t query_width() const { return shape_.heads * shape_.head_dim; }
  std::int64_t key_width() const { return shape_.kv_heads * shape_.head_dim; }
  std::int64_t packed_width() const { return query_width() + 2 * key_width(); }
  std::int64_t up_width() const { return (model_.mlp == Mlp::kSwiglu ? 2 : 1) * shape_.ffn; }
  std::int64_t norm_width() const {  // of queries and keys
    return model_.wide_query_key_norm ? query_width() : shape_.head_dim;
  }
  bool norms_branches() const { return model_.norms_per_layer == 4; }
  // The sum behind attention is part of the norm that reads it.
  bool joins_in_norm() const {
    return shape_.fuses_neighbours && !shape_.dropout && !model_.parallel_block;
  }
  bool cast_sums_bias() const { return shape_.fp8 && shape_.fp8.recipe->cast_sums_bias; }
  bool rotary() const { return model_.position == Position::kRope; }
  double element() const { return static_cast<double>(shape_.element); }

  void declare_parameters();
  AttentionBuffers attention(BufferId input);
  CoreAttentionBuffers core(const AttentionBuffers& saved) {
    return core_attention(builder_, scenario_.training.attention, saved.qkv);
  }
  QueryKeyNorm query_key_norm(bool backward) const;
  Rotary rotation(bool backward) const;
  Activation activation(bool backward, bool bias_gradient = false) const;
  void rotate(AttentionBuffers& buffers);
  // `gradient` is that of the half's output, `residual` what else flows into its input.
  BufferId attention_backward(const AttentionBuffers& saved, BufferId gradient, BufferId residual);
  // Normalises and transforms the output of attention, or the layer's input in a parallel block
  // (GPT-NeoX, Falcon, Phi),
  // and adds to the output.
  MlpBuffers mlp(AttentionBuffers& attended);
  BufferId mlp_backward(const MlpBuffers& saved, BufferId gradient);
  BufferId rotate_backward(const AttentionBuffers& saved, BufferId gradient);
  BufferId add_residual(const char* name, BufferId branch, BufferId residual, ParameterId bias,
                        BufferId& mask);
  BufferId residual_backward(BufferId gradient, BufferId mask, ParameterId bias);

  const Scenario& scenario_;
  const Model& model_;
  Shape shape_;
  BlockBuilder builder_;
  LayerWeights weights_;
  bool keeps_ = true;  // the backward reads what this forward makes
};

void LayerLowering::declare_parameters() {
  const std::int64_t h = shape_.hidden;
  const auto norm = [&](const char* weight, const char* bias) {
    return builder_.norm_parameters(weight, model_.norm_bias ? bias : nullptr, h);
  };
  const auto bias = [&](bool present, const char* name, std::int64_t elements, Cut cut,
                        std::array<std::int64_t, 3> parts = {}) {
    if (!present) return ParameterId{};
    return builder_.parameter({name, elements, 1, cut, Initial::kZeros, parts});
  };
  const std::array<std::int64_t, 3> qkv{query_width(), key_width(), key_width()};
  weights_.attention_norm = norm("attention_norm", "attention_norm_bias");
  weights_.qkv =
      Linear(builder_, {"qkv", "qkv_dgrad", "qkv_wgrad", "qkv", "attention_input_gradient"},
             {"qkv", packed_width(), h, Cut::kRows, Initial::kNormal, qkv},
             scenario_.training.adapts("qkv"));
  weights_.qkv_bias = bias(model_.qkv_bias, "qkv_bias", packed_width(), Cut::kRows, qkv);
  if (model_.query_key_norm || model_.wide_query_key_norm) {
    const Cut cut = model_.wide_query_key_norm ? Cut::kRows : Cut::kNone;
    const std::int64_t key = model_.wide_query_key_norm ? key_width() : shape_.head_dim;
    weights_.query_key_norm = {builder_.vector("query_norm", norm_width(), cut, Initial::kOnes),
                               builder_.vector("key_norm", key, cut, Initial::kOnes)};
  }
  if (model_.attention_sinks > 0) builder_.vector("attention_sinks", shape_.heads, Cut::kRows);
  weights_.attention_out = Linear(builder_,
                                  {"attention_out", "attention_out_dgrad", "attention_out_wgrad",
                                   "attention_output", "context_gradient"},
                                  {"attention_out", h, query_width(), Cut::kColumns},
                                  scenario_.training.adapts("attention_out"));
  weights_.attention_out_bias =
      bias(model_.attention_output_bias, "attention_out_bias", h, Cut::kNone);
  if (norms_branches()) {
    weights_.attention_post_norm = norm("attention_post_norm", "attention_post_norm_bias");
  }
  // Where a parallel block has only one norm, it feeds both halves (Falcon-7B, Phi-2).
  weights_.mlp_norm =
      model_.norms_per_layer == 1 ? weights_.attention_norm : norm("mlp_norm", "mlp_norm_bias");
  const bool gated = model_.mlp == Mlp::kSwiglu, adapts_mlp = scenario_.training.adapts("mlp");
  const std::array<std::int64_t, 3> up{shape_.ffn, gated ? shape_.ffn : 0, 0};
  weights_.mlp_up =
      Linear(builder_, {"mlp_up", "mlp_up_dgrad", "mlp_up_wgrad", "up", "mlp_input_gradient"},
             {"mlp_up", up_width(), h, Cut::kRows, Initial::kNormal, up}, adapts_mlp);
  weights_.mlp_up_bias = bias(model_.mlp_bias, "mlp_up_bias", up_width(), Cut::kRows, up);
  weights_.mlp_down =
      Linear(builder_,
             {"mlp_down", "mlp_down_dgrad", "mlp_down_wgrad", "mlp_output", "activated_gradient"},
             {"mlp_down", h, shape_.ffn, Cut::kColumns}, adapts_mlp);
  weights_.mlp_down_bias = bias(model_.mlp_bias, "mlp_down_bias", h, Cut::kNone);
  if (norms_branches()) weights_.mlp_post_norm = norm("mlp_post_norm", "mlp_post_norm_bias");
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

Activation LayerLowering::activation(bool backward, bool bias_gradient) const {
  const double ups = model_.mlp == Mlp::kSwiglu ? 2 : 1;
  const double passes = backward ? 2 * ups + 1 : ups + 1;
  return {model_.mlp,
          backward,
          weights_.mlp_up_bias.valid(),
          bias_gradient,
          shape_.type,
          activation_steps(model_.mlp, backward, element())
              .of(builder_.size(shape_.tokens * shape_.ffn, shape_.ffn, passes * element()))};
}

void LayerLowering::rotate(AttentionBuffers& buffers) {
  const BufferId packed = buffers.packed.y;
  buffers.qkv = {packed, packed, packed};
  const bool normed = model_.query_key_norm || model_.wide_query_key_norm;
  if (!rotary() && !normed) return;
  // The value stays a view of the packed projection, which therefore lives as long as it does.
  const std::int64_t query = shape_.tokens * query_width(), key = shape_.tokens * key_width();
  if (normed) {
    buffers.qkv.query = builder_.activation("query_normed", query);
    buffers.qkv.key = builder_.activation("key_normed", key);
    builder_.add("query_key_norm", query_key_norm(false), {packed},
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
    builder_.add("query_key_norm", query_key_norm(true), {saved.packed.y, gradient}, {gradient});
    builder_.uses(weights_.query_key_norm);
  }
  return gradient;
}

AttentionBuffers LayerLowering::attention(BufferId input) {
  const InAttention part(builder_);
  const std::int64_t h = shape_.hidden;
  AttentionBuffers out;
  out.input = input;
  out.normed = builder_.norm("attention_norm", weights_.attention_norm, input, shape_.rows, h);
  out.entered = weights_.qkv.enter(builder_, "attention_input", out.normed, keeps_);
  out.packed = weights_.qkv.forward(builder_, out.entered, weights_.qkv_bias);
  rotate(out);
  out.core = core(out);
  out.left = weights_.attention_out.take(builder_, out.core.context, keeps_);
  out.projected = weights_.attention_out.forward(builder_, out.left);
  out.branch = builder_.leave_region("attention_reduced", out.projected.y);
  out.joining = norms_branches()
                    ? builder_.norm("attention_post_norm", weights_.attention_post_norm, out.branch,
                                    shape_.rows, h)
                    : out.branch;
  if (joins_in_norm()) return out;
  out.output =
      add_residual("attention_residual", out.joining, input, weights_.attention_out_bias, out.mask);
  return out;
}

BufferId LayerLowering::attention_backward(const AttentionBuffers& saved, BufferId gradient,
                                           BufferId residual) {
  const InAttention part(builder_);
  const std::int64_t h = shape_.hidden;
  BufferId branch = residual_backward(gradient, saved.mask, weights_.attention_out_bias);
  if (norms_branches()) {
    branch = builder_.norm_backward("attention_post_norm", weights_.attention_post_norm,
                                    saved.branch, branch, BufferId{}, shape_.rows, h);
  }
  const LinearInput whole =
      weights_.attention_out.leave_backward(builder_, "attention_output_gradient", branch);
  const LinearGradient context = weights_.attention_out.input_gradient(builder_, whole);
  weights_.attention_out.weight_gradient(builder_, whole, saved.left, saved.projected, context);
  BufferId packed_gradient = core_attention_backward(builder_, scenario_.training.attention,
                                                     saved.qkv, saved.core, context.x);
  packed_gradient = rotate_backward(saved, packed_gradient);
  const LinearInput packed = weights_.qkv.take_gradient(builder_, packed_gradient);
  if (weights_.qkv_bias.valid() && !cast_sums_bias()) {
    builder_.bias_gradient(weights_.qkv_bias, shape_.tokens, packed_width(), {packed_gradient});
  }
  const LinearInput input = weights_.qkv.gather_again(builder_, "attention_input", saved.entered);
  const LinearGradient partial = weights_.qkv.input_gradient(builder_, packed);
  const BufferId reduced = builder_.enter_backward("attention_input_gradient", partial.x);
  weights_.qkv.weight_gradient(builder_, packed, input, saved.packed, partial);
  return builder_.norm_backward("attention_norm", weights_.attention_norm, saved.input, reduced,
                                residual, shape_.rows, h);
}

MlpBuffers LayerLowering::mlp(AttentionBuffers& attended) {
  const std::int64_t h = shape_.hidden;
  MlpBuffers out;
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
  out.entered = weights_.mlp_up.enter(builder_, "mlp_input", out.normed, keeps_);
  out.up = weights_.mlp_up.forward(builder_, out.entered);
  out.activated = builder_.activation("activated", shape_.tokens * shape_.ffn);
  builder_.add("activation", activation(false), {out.up.y}, {out.activated});
  builder_.uses({weights_.mlp_up_bias});
  out.left = weights_.mlp_down.take(builder_, out.activated, keeps_);
  out.down = weights_.mlp_down.forward(builder_, out.left);
  out.branch = builder_.leave_region("mlp_reduced", out.down.y);
  const BufferId branch = norms_branches() ? builder_.norm("mlp_post_norm", weights_.mlp_post_norm,
                                                           out.branch, shape_.rows, h)
                                           : out.branch;
  out.output =
      add_residual("mlp_residual", branch, attended.output, weights_.mlp_down_bias, out.mask);
  return out;
}

BufferId LayerLowering::mlp_backward(const MlpBuffers& saved, BufferId gradient) {
  const std::int64_t h = shape_.hidden;
  BufferId branch = residual_backward(gradient, saved.mask, weights_.mlp_down_bias);
  if (norms_branches()) {
    branch = builder_.norm_backward("mlp_post_norm", weights_.mlp_post_norm, saved.branch, branch,
                                    BufferId{}, shape_.rows, h);
  }
  const LinearInput whole =
      weights_.mlp_down.leave_backward(builder_, "mlp_output_gradient", branch);
  const LinearGradient activated = weights_.mlp_down.input_gradient(builder_, whole);
  weights_.mlp_down.weight_gradient(builder_, whole, saved.left, saved.down, activated);
  const BufferId up = builder_.activation("up_gradient", shape_.tokens * up_width());
  const bool has_bias = weights_.mlp_up_bias.valid();
  const bool sums = has_bias && shape_.fuses_neighbours && builder_.trains(weights_.mlp_up_bias);
  builder_.add("activation", activation(true, sums), {saved.up.y, activated.x}, {up});
  builder_.uses({weights_.mlp_up_bias});
  const LinearInput flowing = weights_.mlp_up.take_gradient(builder_, up);
  if (has_bias && !sums && !cast_sums_bias()) {
    builder_.bias_gradient(weights_.mlp_up_bias, shape_.tokens, up_width(), {up});
  }
  const LinearInput input = weights_.mlp_up.gather_again(builder_, "mlp_input", saved.entered);
  const LinearGradient partial = weights_.mlp_up.input_gradient(builder_, flowing);
  const BufferId reduced = builder_.enter_backward("mlp_input_gradient", partial.x);
  weights_.mlp_up.weight_gradient(builder_, flowing, input, saved.up, partial);
  return builder_.norm_backward("mlp_norm", weights_.mlp_norm, saved.input, reduced, gradient,
                                shape_.rows, h);
}

void LayerLowering::lower(RecomputeMode recompute) {
  Block& block = builder_.block();
  const std::int64_t elements = shape_.rows * shape_.hidden;
  block.input = builder_.activation("layer_input", elements);
  block.output_gradient = builder_.activation("output_gradient", elements);

  builder_.into(Pass::kForward, Phase::kForward);
  copy_gathered_unit(scenario_, builder_);
  keeps_ = recompute != RecomputeMode::kFull;
  AttentionBuffers attended = attention(block.input);
  MlpBuffers fed = mlp(attended);
  block.output = fed.output;

  if (recompute == RecomputeMode::kFull) {
    keeps_ = true;
    builder_.into(Pass::kInputGradient, Phase::kRecompute);
    attended = attention(block.input);
    fed = mlp(attended);
  }
  builder_.into_input_gradients();
  if (scenario_.layout.zero == 3) copy_gathered_unit(scenario_, builder_);
  const BufferId middle = mlp_backward(fed, block.output_gradient);
  if (recompute == RecomputeMode::kSelective) {
    // The recomputed context replaces the first, which the output projection's weight gradient
    // still reads: it is kept, as core_attention's output is in the published term 34 sbh.
    builder_.into(Pass::kInputGradient, Phase::kRecompute);
    const BufferId kept = attended.core.context;
    attended.core = core(attended);
    attended.core.context = kept;
    builder_.into_input_gradients();
  }
  const BufferId attended_gradient = model_.parallel_block ? block.output_gradient : middle;
  block.input_gradient = attention_backward(attended, attended_gradient, middle);
  copy_unit_gradients(scenario_, builder_);
}

}  // namespace

Block lower_decoder_layer(const Scenario& scenario, RecomputeMode recompute, BackwardForm form) {
  Block block;
  block.form = form;
  block.kind = BlockKind::kLayer;
  LayerLowering lowering(scenario, block);
  lowering.lower(recompute);
  finish_block(block);
  return block;
}

}  // namespace stepcast
