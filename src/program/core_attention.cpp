// SPDX-License-Identifier: Apache-2.0
#include "program/core_attention.h"

#include "program/context_attention.h"

namespace stepcast {
namespace {

std::int64_t context_elements(const Shape& shape) {
  return shape.tokens * shape.heads * shape.head_dim;
}
std::int64_t qkv_elements(const Shape& shape) {
  return shape.tokens * (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
}
std::int64_t score_elements(const Shape& shape) {
  return shape.batch * shape.heads * shape.sequence * shape.sequence;
}

Attention fused(const Shape& shape, bool backward, const AttentionSpan& span) {
  const DataType type = shape.attended();
  return {backward,
          shape.batch,
          shape.heads,
          shape.kv_heads,
          shape.sequence,
          shape.sequence,
          shape.head_dim,
          true,
          type,
          {},
          span.window,
          span.chunk,
          {span.sinks.valid() ? 1 : 0}};
}

ContextHeads context_heads(const Shape& shape, const AttentionSpan& span) {
  return {shape.heads, shape.kv_heads, shape.head_dim, shape.head_dim, span};
}

CoreAttentionBuffers flash(BlockBuilder& builder, const QkvBuffers& qkv,
                           const AttentionSpan& span) {
  const Shape& shape = builder.shape();
  QkvBuffers read = qkv;
  if (shape.fp8_attention) {
    const BufferId copy =
        cast_for_attention(builder, false, qkv_elements(shape), {qkv.query, qkv.key, qkv.value});
    read = {copy, copy, copy};
  }
  if (shape.cp > 1) return context_attention(builder, context_heads(shape, span), read);
  CoreAttentionBuffers out;
  out.context = builder.activation("context", context_elements(shape));
  out.softmax = builder.buffer("log_sum_exp", shape.tokens * shape.heads, DataType::kFp32);
  builder.add("attention", fused(shape, false, span), {read.query, read.key, read.value},
              {out.context, out.softmax});
  builder.uses({span.sinks});
  out.read = read;
  return out;
}

// Bytes per score of scale, mask and softmax: one kernel, or cast to fp32, scale, mask, softmax and
// cast back (fused_softmax.py: forward_torch_softmax; a mask is one byte).
struct SoftmaxTraffic {
  double forward, backward;
  std::int64_t launches;
};
SoftmaxTraffic softmax_traffic(const Shape& shape) {
  const double e = static_cast<double>(shape.element);
  if (!shape.softmax_in_steps) return {2 * e, 3 * e, 1};
  const double casts = shape.element < 4 ? 2 * (e + 4) : 0;
  return {casts + 8 + 9 + 8, casts + 12 + 9 + 8, shape.element < 4 ? 5 : 3};
}

BufferId flash_backward(BlockBuilder& builder, const CoreAttentionBuffers& saved,
                        BufferId context_gradient, const AttentionSpan& span) {
  const Shape& shape = builder.shape();
  if (shape.fp8_attention) {
    context_gradient =
        cast_for_attention(builder, true, context_elements(shape), {context_gradient});
  }
  const QkvBuffers& qkv = saved.read;
  const BufferId gradient = builder.activation("qkv_gradient", qkv_elements(shape));
  if (shape.cp > 1) {
    context_attention_backward(builder, context_heads(shape, span), saved, context_gradient,
                               {gradient, gradient, gradient});
    return gradient;
  }
  // The kernels accumulate the query gradient in fp32 (FlashAttention-2, section 3.1).
  const BufferId query_accumulator = builder.buffer("query_accumulator", context_elements(shape),
                                                    DataType::kFp32, MemoryCategory::kWorkspace);
  builder.add("attention_backward", fused(shape, true, span),
              {qkv.query, qkv.key, qkv.value, saved.context, saved.softmax, context_gradient},
              {gradient, query_accumulator});
  builder.uses({span.sinks});
  return gradient;
}

// The gradients as the projection packs what they belong to.
BufferId unfused_backward(BlockBuilder& builder, const QkvBuffers& qkv,
                          const CoreAttentionBuffers& saved, BufferId context_gradient) {
  const Shape& shape = builder.shape();
  const QkvBuffers apart =
      unfused_attention_backward(builder, builder.attention_sizes(), qkv, saved, context_gradient);
  const std::int64_t packed = (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
  const double e = static_cast<double>(shape.element);
  const BufferId gradient = builder.activation("qkv_gradient", qkv_elements(shape));
  builder.add("qkv_gather",
              QkvGather{builder.attention_sizes(), shape.type,
                        builder.size(qkv_elements(shape), packed, 2 * e, 3)},
              {apart.query, apart.key, apart.value}, {gradient});
  return gradient;
}

}  // namespace

BufferId cast_for_attention(BlockBuilder& builder, bool backward, std::int64_t elements,
                            BlockBuilder::Buffers from) {
  const Shape& shape = builder.shape();
  const BufferId out =
      builder.buffer(backward ? "context_gradient_fp8" : "qkv_fp8",
                     shape.attention_fp8.copy_bytes(elements), shape.attention_fp8.type);
  const double element = static_cast<double>(shape.element);
  if (shape.attention_fp8.recipe->finds_scale) {
    builder.add("find_scale",
                Cast{CastSubject::kScale, backward, shape.type, DataType::kFp32,
                     builder.size(elements, 0, element, 2)},
                from, {});
  }
  builder.add(
      "cast_to_fp8",
      Cast{CastSubject::kOperand, backward, shape.type, shape.attention_fp8.type,
           builder.size(elements, 0, element + 1 + shape.attention_fp8.recipe->scale_bytes)},
      from, {out});
  return out;
}

// Megatron's core attention: scores, fused scale-mask-softmax, dropout, context, and the copy that
// brings the heads of the context together.
CoreAttentionBuffers unfused_attention(BlockBuilder& builder, const AttentionSizes& sizes,
                                       const QkvBuffers& qkv) {
  const Shape& shape = builder.shape();
  const DataType type = shape.type;
  const std::int64_t width = sizes.heads * sizes.value_width();
  const std::int64_t context = shape.tokens * width;
  const std::int64_t scores_elements = score_elements(shape);
  const double e = static_cast<double>(shape.element);
  CoreAttentionBuffers out;
  const BufferId scores = builder.activation("scores", scores_elements);
  builder.add("scores", AttentionProduct{AttentionProductKind::kScores, sizes, shape.product},
              {qkv.query, qkv.key}, {scores});
  const SoftmaxTraffic traffic = softmax_traffic(shape);
  out.softmax = builder.activation("probabilities", scores_elements);
  // In steps the softmax keeps what it wrote itself, for its backward.
  if (shape.softmax_in_steps && shape.element < 4) {
    out.wide_softmax = builder.buffer("probabilities_fp32", scores_elements, DataType::kFp32);
  }
  const AttentionSoftmax softmax{
      false, sizes, type,
      builder.size(scores_elements, shape.sequence, traffic.forward, traffic.launches)};
  if (out.wide_softmax.valid()) {
    builder.add("softmax", softmax, {scores}, {out.softmax, out.wide_softmax});
  } else {
    builder.add("softmax", softmax, {scores}, {out.softmax});
  }
  out.dropped = out.softmax;
  if (shape.dropout) {
    out.mask = builder.buffer("attention_mask", scores_elements, DataType::kInt8);
    out.dropped = builder.activation("dropped", scores_elements);
    builder.add("attention_dropout",
                Dropout{false, type, builder.size(scores_elements, 0, 2 * e + 1)}, {out.softmax},
                {out.dropped, out.mask});
  }
  const BufferId by_head = builder.activation("context_by_head", context);
  builder.add("context", AttentionProduct{AttentionProductKind::kContext, sizes, shape.product},
              {out.dropped, qkv.value}, {by_head});
  out.context = builder.activation("context", context);
  builder.add("context_transpose",
              ContextTranspose{false, sizes, type, builder.size(context, width, 2 * e, 2)},
              {by_head}, {out.context});
  return out;
}

QkvBuffers unfused_attention_backward(BlockBuilder& builder, const AttentionSizes& sizes,
                                      const QkvBuffers& qkv, const CoreAttentionBuffers& saved,
                                      BufferId context_gradient) {
  const Shape& shape = builder.shape();
  const DataType type = shape.type;
  const std::int64_t width = sizes.heads * sizes.value_width();
  const std::int64_t context = shape.tokens * width;
  const std::int64_t keys = shape.tokens * sizes.heads * sizes.head_dim;
  const std::int64_t scores_elements = score_elements(shape);
  const double e = static_cast<double>(shape.element);
  const auto product = [&](const char* name, AttentionProductKind kind, BufferId a, BufferId b,
                           BufferId out) {
    builder.add(name, AttentionProduct{kind, sizes, shape.product}, {a, b}, {out});
    return out;
  };
  const BufferId by_head = builder.activation("context_gradient_by_head", context);
  builder.add("context_transpose",
              ContextTranspose{true, sizes, type, builder.size(context, width, 2 * e, 2)},
              {context_gradient}, {by_head});
  const BufferId dropped =
      product("context_dgrad", AttentionProductKind::kProbabilitiesGradient, by_head, qkv.value,
              builder.activation("probabilities_gradient", scores_elements));
  const BufferId value_gradient =
      product("value_grad", AttentionProductKind::kValueGradient, saved.dropped, by_head,
              builder.activation("value_gradient", context));
  if (shape.dropout) {
    builder.add("attention_dropout",
                Dropout{true, type, builder.size(scores_elements, 0, 2 * e + 1)},
                {dropped, saved.mask}, {dropped});
  }
  const SoftmaxTraffic traffic = softmax_traffic(shape);
  const BufferId raw = builder.activation("scores_gradient", scores_elements);
  builder.add("softmax",
              AttentionSoftmax{true, sizes, type,
                               builder.size(scores_elements, shape.sequence, traffic.backward,
                                            traffic.launches)},
              {dropped, saved.softmax, saved.wide_softmax}, {raw});
  const BufferId query_gradient = product("query_grad", AttentionProductKind::kQueryGradient, raw,
                                          qkv.key, builder.activation("query_gradient", keys));
  const BufferId key_gradient = product("key_grad", AttentionProductKind::kKeyGradient, raw,
                                        qkv.query, builder.activation("key_gradient", keys));
  return {query_gradient, key_gradient, value_gradient};
}

CoreAttentionBuffers core_attention(BlockBuilder& builder, AttentionKernel kernel,
                                    const QkvBuffers& qkv, const AttentionSpan& span) {
  return kernel == AttentionKernel::kFlash
             ? flash(builder, qkv, span)
             : unfused_attention(builder, builder.attention_sizes(), qkv);
}

BufferId core_attention_backward(BlockBuilder& builder, AttentionKernel kernel,
                                 const QkvBuffers& qkv, const CoreAttentionBuffers& saved,
                                 BufferId context_gradient, const AttentionSpan& span) {
  return kernel == AttentionKernel::kFlash
             ? flash_backward(builder, saved, context_gradient, span)
             : unfused_backward(builder, qkv, saved, context_gradient);
}

}  // namespace stepcast
