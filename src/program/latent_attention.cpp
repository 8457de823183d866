// SPDX-License-Identifier: Apache-2.0
#include "program/latent_attention.h"

#include "layout/scenario.h"

namespace stepcast {

LatentAttention::LatentAttention(const Scenario& scenario, BlockBuilder& builder)
    : scenario_(scenario), model_(scenario.model), mla_(*scenario.model.mla), builder_(builder) {
  const Shape& shape = builder.shape();
  const std::int64_t h = shape.hidden;
  const std::int64_t latent = mla_.kv_lora_rank + mla_.qk_rope_head_dim;
  const char* no_bias = nullptr;
  const bool adapts = scenario.training.lora_targets.has(AdapterTarget::kQkv);
  if (has_query_latent()) {
    query_down_ = Linear(builder,
                         {"query_down", "query_down_dgrad", "query_down_wgrad", "query_latent",
                          "query_input_gradient"},
                         {"query_down", mla_.q_lora_rank, h}, adapts, shape.rows);
    query_norm_ = builder.norm_parameters("query_latent_norm",
                                          model_.norm_bias ? "query_latent_norm_bias" : no_bias,
                                          mla_.q_lora_rank);
  }
  query_up_ = Linear(
      builder, {"query_up", "query_up_dgrad", "query_up_wgrad", "query", "query_latent_gradient"},
      {"query_up", heads() * key_width(), has_query_latent() ? mla_.q_lora_rank : h, Cut::kRows},
      adapts);
  key_value_down_ = Linear(builder,
                           {"key_value_down", "key_value_down_dgrad", "key_value_down_wgrad",
                            "key_value_latent", "key_value_input_gradient"},
                           {"key_value_down", latent, h}, adapts, shape.rows);
  key_value_norm_ = builder.norm_parameters(
      "key_value_latent_norm", model_.norm_bias ? "key_value_latent_norm_bias" : no_bias,
      mla_.kv_lora_rank);
  key_value_up_ =
      Linear(builder,
             {"key_value_up", "key_value_up_dgrad", "key_value_up_wgrad", "key_value_heads",
              "key_value_latent_gradient"},
             {"key_value_up", heads() * up_width(), mla_.kv_lora_rank, Cut::kRows}, adapts);
  if (model_.qkv_bias) {
    if (has_query_latent())
      query_bias_ = builder.vector("query_down_bias", mla_.q_lora_rank, Cut::kNone);
    key_value_bias_ = builder.vector("key_value_down_bias", latent, Cut::kNone);
  }
}

BufferId LatentAttention::of_heads(const char* name, std::int64_t width) {
  return builder_.activation(name, builder_.shape().tokens * heads() * width);
}

Attention LatentAttention::attention(bool backward) const {
  const Shape& shape = builder_.shape();
  const DataType type = shape.attended();
  return {backward,       shape.batch,       heads(),     heads(),
          shape.sequence, shape.sequence,    key_width(), true,
          type,           {mla_.v_head_dim}, {},          shape.document_span};
}

bool LatentAttention::unfused() const {
  return scenario_.training.attention == AttentionKernel::kUnfused;
}

AttentionSizes LatentAttention::sizes() const {
  const Shape& shape = builder_.shape();
  return {shape.batch, heads(), heads(), shape.sequence, key_width(), {mla_.v_head_dim}};
}

// The rotary part of queries is turned in place; keys are put together and values copied out.
LatentRotary LatentAttention::rotation(bool backward) const {
  const Shape& shape = builder_.shape();
  const std::int64_t made = heads() * (key_width() + mla_.v_head_dim);
  const std::int64_t moved =
      heads() * (2 * mla_.qk_rope_head_dim + up_width()) + mla_.qk_rope_head_dim + made;
  const double bytes = static_cast<double>(shape.element * shape.tokens * moved);
  constexpr std::int64_t kSteps = 9;  // forward and backward: split, turn (twice four), join
  return {backward,
          shape.sequence,
          heads(),
          mla_.qk_nope_head_dim,
          mla_.qk_rope_head_dim,
          mla_.v_head_dim,
          shape.type,
          {shape.tokens * made, made, bytes, kSteps}};
}

LinearOutput LatentAttention::multiply(Product product, const Linear& linear,
                                       const LinearInput& input, const LinearOutput& saved,
                                       ParameterId bias) {
  const std::int64_t dropped = linear.dropped(kept_, number(product));
  if (again_) return linear.make_again(builder_, input, saved, bias, dropped);
  return linear.forward(builder_, input, bias, linear.split(kept_, dropped));
}

void LatentAttention::make_latents(BufferId input) {
  if (has_query_latent()) {
    saved_.query_input = query_down_.take(builder_, input, keeps_);
    saved_.query_down = multiply(Product::kQueryDown, query_down_, saved_.query_input,
                                 saved_.query_down, query_bias_);
  }
  saved_.key_value_input = key_value_down_.take(builder_, input, keeps_);
  saved_.key_value_down = multiply(Product::kKeyValueDown, key_value_down_, saved_.key_value_input,
                                   saved_.key_value_down, key_value_bias_);
}

// Each norm is part of the product behind it where there is one module for both
// (TELayerNormColumnParallelLinear), so what makes heads again makes them again too.
void LatentAttention::norm_latents() {
  const Shape& shape = builder_.shape();
  if (has_query_latent()) {
    saved_.query_latent = builder_.norm("query_latent_norm", query_norm_, saved_.query_down.y,
                                        shape.rows, mla_.q_lora_rank);
  }
  saved_.key_latent = builder_.norm("key_value_latent_norm", key_value_norm_,
                                    saved_.key_value_down.y, shape.rows, mla_.kv_lora_rank);
}

// Queries, keys and values of the rank's heads.
void LatentAttention::make_heads(BufferId input) {
  saved_.gathered_query =
      has_query_latent() ? query_up_.enter(builder_, "query_latent", saved_.query_latent, keeps_)
                         : query_up_.enter(builder_, "attention_input", input, keeps_);
  saved_.query_up = multiply(Product::kQueryUp, query_up_, saved_.gathered_query, saved_.query_up);
  saved_.gathered_key =
      key_value_up_.enter(builder_, "key_value_latent", saved_.key_latent, keeps_);
  saved_.rotary_key =
      builder_.enter_region("rotary_key", saved_.key_value_down.y, mla_.qk_rope_head_dim);
  saved_.key_value_up =
      multiply(Product::kKeyValueUp, key_value_up_, saved_.gathered_key, saved_.key_value_up);
  QkvBuffers& qkv = saved_.qkv;
  // Queries are turned in place, unless they are kept to be turned again.
  const bool stay = kept_.chooses() && kept_.has(number(Product::kQueryUp));
  qkv.query = stay ? of_heads("turned_query", key_width()) : saved_.query_up.y;
  qkv.key = of_heads("key", key_width());
  qkv.value = of_heads("value", mla_.v_head_dim);
  builder_.add("latent_rotary", rotation(false),
               {saved_.query_up.y, saved_.key_value_up.y, saved_.rotary_key},
               {qkv.query, qkv.key, qkv.value});
}

void LatentAttention::read_heads() {
  const QkvBuffers& qkv = saved_.qkv;
  saved_.read = qkv;
  if (!builder_.shape().fp8_attention) return;
  const std::int64_t width = 2 * key_width() + mla_.v_head_dim;
  const BufferId copy = cast_for_attention(
      builder_, false, builder_.shape().tokens * heads() * width, {qkv.query, qkv.key, qkv.value});
  saved_.read = {copy, copy, copy};
}

void LatentAttention::attend() {
  const QkvBuffers& qkv = saved_.read;
  if (builder_.shape().cp > 1) {
    saved_.core = context_attention(builder_, context_heads(), qkv);
    return;
  }
  if (unfused()) {
    saved_.core = unfused_attention(builder_, sizes(), qkv);
    saved_.core.read = qkv;
    return;
  }
  saved_.core.context = of_heads("context", mla_.v_head_dim);
  saved_.core.softmax =
      builder_.buffer("log_sum_exp", builder_.shape().tokens * heads(), DataType::kFp32);
  builder_.add("attention", attention(false), {qkv.query, qkv.key, qkv.value},
               {saved_.core.context, saved_.core.softmax});
  saved_.core.read = qkv;
}

// Attention reads what was made again, but for copies in fp8 and what ranks have exchanged.
void LatentAttention::read_again() {
  const Shape& shape = builder_.shape();
  const bool own = shape.cp == 1 || shape.cp_method == ContextMethod::kAllGather;
  if (own) {
    saved_.core.read = saved_.read;
  } else if (shape.cp_exchange == 1 && !shape.fp8_attention) {
    saved_.core.read.query = saved_.read.query;
  }
}

void LatentAttention::make_again(BufferId input) {
  keeps_ = true;
  again_ = true;
  make_latents(input);
  norm_latents();
  make_heads(input);
  again_ = false;
  if (builder_.shape().fp8_attention) return;
  read_heads();
  read_again();
}

BufferId LatentAttention::forward(BufferId input, bool keeps, const KeptProducts& kept) {
  keeps_ = keeps;
  kept_ = kept;
  saved_ = {};
  make_latents(input);
  norm_latents();
  make_heads(input);
  read_heads();
  attend();
  return saved_.core.context;
}

QkvBuffers LatentAttention::attend_backward(BufferId context_gradient) {
  const QkvBuffers& qkv = saved_.core.read;
  if (builder_.shape().fp8_attention) {
    context_gradient = cast_for_attention(builder_, true, builder_.shape().tokens * context_width(),
                                          {context_gradient});
  }
  if (unfused()) {
    return unfused_attention_backward(builder_, sizes(), qkv, saved_.core, context_gradient);
  }
  const QkvBuffers out{of_heads("query_gradient", key_width()),
                       of_heads("key_gradient", key_width()),
                       of_heads("value_gradient", mla_.v_head_dim)};
  if (builder_.shape().cp > 1) {
    context_attention_backward(builder_, context_heads(), saved_.core, context_gradient, out);
    return out;
  }
  // The kernels accumulate the query gradient in fp32, as in core_attention.cpp.
  const BufferId accumulator =
      builder_.buffer("query_accumulator", builder_.shape().tokens * heads() * key_width(),
                      DataType::kFp32, MemoryCategory::kWorkspace);
  builder_.add(
      "attention_backward", attention(true),
      {qkv.query, qkv.key, qkv.value, saved_.core.context, saved_.core.softmax, context_gradient},
      {out.query, out.key, out.value, accumulator});
  return out;
}

BufferId LatentAttention::query_backward(BufferId gradient) {
  const Shape& shape = builder_.shape();
  const LinearInput flowing = query_up_.take_gradient(builder_, gradient);
  const LinearGradient latent = query_up_.input_gradient(builder_, flowing, saved_.query_up);
  const char* name = has_query_latent() ? "query_latent" : "attention_input";
  const LinearInput gathered = query_up_.gather_again(builder_, name, saved_.gathered_query);
  if (!has_query_latent()) {
    const BufferId reduced = builder_.enter_backward("query_input_gradient", latent.x);
    query_up_.weight_gradient(builder_, flowing, gathered, saved_.query_up, latent);
    return reduced;
  }
  const BufferId reduced =
      builder_.enter_backward("query_latent_gradient", latent.x, mla_.q_lora_rank);
  query_up_.weight_gradient(builder_, flowing, gathered, saved_.query_up, latent);
  const BufferId down =
      builder_.norm_backward("query_latent_norm", query_norm_, saved_.query_down.y, reduced,
                             BufferId{}, shape.rows, mla_.q_lora_rank);
  if (query_bias_.valid()) {
    builder_.bias_gradient(query_bias_, shape.rows, mla_.q_lora_rank, {down});
  }
  const LinearInput leaving = query_down_.take_gradient(builder_, down);
  const LinearGradient out = query_down_.input_gradient(builder_, leaving, saved_.query_down);
  query_down_.weight_gradient(builder_, leaving, saved_.query_input, saved_.query_down, out);
  return out.x;
}

BufferId LatentAttention::key_value_backward(BufferId gradient, BufferId rotary_gradient) {
  const Shape& shape = builder_.shape();
  const std::int64_t width = mla_.kv_lora_rank + mla_.qk_rope_head_dim;
  const LinearInput flowing = key_value_up_.take_gradient(builder_, gradient);
  const LinearGradient latent =
      key_value_up_.input_gradient(builder_, flowing, saved_.key_value_up);
  const LinearInput gathered =
      key_value_up_.gather_again(builder_, "key_value_latent", saved_.gathered_key);
  const BufferId reduced =
      builder_.enter_backward("key_value_latent_gradient", latent.x, mla_.kv_lora_rank);
  key_value_up_.weight_gradient(builder_, flowing, gathered, saved_.key_value_up, latent);
  const BufferId rotary =
      builder_.enter_backward("rotary_key_gradient", rotary_gradient, mla_.qk_rope_head_dim);
  const BufferId normed =
      builder_.norm_backward("key_value_latent_norm", key_value_norm_, saved_.key_value_down.y,
                             reduced, BufferId{}, shape.rows, mla_.kv_lora_rank);
  const BufferId down = builder_.activation("key_value_down_gradient", shape.rows * width);
  builder_.add(
      "join_latent_gradients",
      JoinRows{true, shape.type,
               builder_.size(shape.rows * width, width, 2 * static_cast<double>(shape.element))},
      {normed, rotary}, {down});
  if (key_value_bias_.valid()) builder_.bias_gradient(key_value_bias_, shape.rows, width, {down});
  const LinearInput leaving = key_value_down_.take_gradient(builder_, down);
  const LinearGradient out =
      key_value_down_.input_gradient(builder_, leaving, saved_.key_value_down);
  key_value_down_.weight_gradient(builder_, leaving, saved_.key_value_input, saved_.key_value_down,
                                  out);
  return out.x;
}

BufferId LatentAttention::backward(BufferId context_gradient, BufferId input,
                                   const RecomputedModules& again) {
  const Shape& shape = builder_.shape();
  const BufferId kept = saved_.core.context;
  builder_.into(Pass::kInputGradient, Phase::kRecompute);
  if (again.has(RecomputedModule::kLatentQueries)) {
    norm_latents();
    make_heads(input);
    read_heads();
    read_again();
  }
  if (again.has(RecomputedModule::kCoreAttention)) attend();
  builder_.into_input_gradients();
  // The output projection's weight gradient reads the first context: it is kept.
  if (again.has(RecomputedModule::kCoreAttention)) saved_.core.context = kept;

  if (has_query_latent()) {
    saved_.query_input = query_down_.renewed(saved_.query_input, input);
  } else {
    saved_.gathered_query = query_up_.renewed(saved_.gathered_query, input);
  }
  saved_.key_value_input = key_value_down_.renewed(saved_.key_value_input, input);
  const QkvBuffers gradients = attend_backward(context_gradient);
  const BufferId up = of_heads("key_value_gradient", up_width());
  const BufferId rotary =
      builder_.activation("rotary_gradient", shape.tokens * mla_.qk_rope_head_dim);
  builder_.add("latent_rotary", rotation(true), {gradients.query, gradients.key, gradients.value},
               {gradients.query, up, rotary});
  const BufferId of_query = query_backward(gradients.query);
  const BufferId of_keys = key_value_backward(up, rotary);
  const std::int64_t elements = shape.rows * shape.hidden;
  const BufferId sum = builder_.activation("attention_input_gradient", elements);
  builder_.add(
      "add_latent_gradients",
      ResidualAdd{true, false, false, shape.type,
                  builder_.size(elements, shape.hidden, 3 * static_cast<double>(shape.element))},
      {of_query, of_keys}, {sum});
  return sum;
}

}  // namespace stepcast
