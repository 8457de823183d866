// SPDX-License-Identifier: Apache-2.0
#include "program/core_attention.h"

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

CoreAttentionBuffers flash(BlockBuilder& builder, const QkvBuffers& qkv) {
  const Shape& shape = builder.shape();
  CoreAttentionBuffers out;
  out.context = builder.activation("context", context_elements(shape));
  out.softmax = builder.buffer("log_sum_exp", shape.tokens * shape.heads, DataType::kFp32);
  builder.attention("attention", false, {qkv.query, qkv.key, qkv.value},
                    {out.context, out.softmax});
  return out;
}

// Megatron's core attention: scores, fused scale-mask-softmax, dropout, context, and the copy that
// brings the heads of the context together.
CoreAttentionBuffers unfused(BlockBuilder& builder, const QkvBuffers& qkv) {
  const Shape& shape = builder.shape();
  const std::int64_t s = shape.sequence, d = shape.head_dim;
  const std::int64_t batch = shape.batch * shape.heads;
  const std::int64_t scores_elements = score_elements(shape);
  const double e = static_cast<double>(shape.element);
  CoreAttentionBuffers out;
  const BufferId scores = builder.activation("scores", scores_elements);
  builder.gemm("scores", GemmRole::kForward, s, s, d, {qkv.query, qkv.key}, {scores}, batch);
  out.softmax = builder.activation("probabilities", scores_elements);
  builder.elementwise("softmax", ElementwiseKind::kSoftmax, scores_elements, s, 2 * e, {scores},
                      {out.softmax});
  out.dropped = out.softmax;
  if (shape.dropout) {
    out.mask = builder.buffer("attention_mask", scores_elements, DataType::kInt8);
    out.dropped = builder.activation("dropped", scores_elements);
    builder.elementwise("attention_dropout", ElementwiseKind::kDropoutAdd, scores_elements, 0,
                        2 * e + 1, {out.softmax}, {out.dropped, out.mask});
  }
  const BufferId by_head = builder.activation("context_by_head", context_elements(shape));
  builder.gemm("context", GemmRole::kForward, s, d, s, {out.dropped, qkv.value}, {by_head}, batch);
  out.context = builder.activation("context", context_elements(shape));
  builder.elementwise("context_transpose", ElementwiseKind::kTranspose, context_elements(shape), 0,
                      2 * e, {by_head}, {out.context}, false, 2);
  return out;
}

BufferId flash_backward(BlockBuilder& builder, const QkvBuffers& qkv,
                        const CoreAttentionBuffers& saved, BufferId context_gradient) {
  const Shape& shape = builder.shape();
  const BufferId gradient = builder.activation("qkv_gradient", qkv_elements(shape));
  // The kernels accumulate the query gradient in fp32 (FlashAttention-2, section 3.1).
  const BufferId query_accumulator = builder.buffer("query_accumulator", context_elements(shape),
                                                    DataType::kFp32, MemoryCategory::kWorkspace);
  builder.attention("attention_backward", true,
                    {qkv.query, qkv.key, qkv.value, saved.context, saved.softmax, context_gradient},
                    {gradient, query_accumulator});
  return gradient;
}

BufferId unfused_backward(BlockBuilder& builder, const QkvBuffers& qkv,
                          const CoreAttentionBuffers& saved, BufferId context_gradient) {
  const Shape& shape = builder.shape();
  const std::int64_t s = shape.sequence, d = shape.head_dim;
  const std::int64_t batch = shape.batch * shape.heads;
  const std::int64_t scores_elements = score_elements(shape);
  const double e = static_cast<double>(shape.element);
  const BufferId by_head = builder.activation("context_gradient_by_head", context_elements(shape));
  builder.elementwise("context_transpose", ElementwiseKind::kTranspose, context_elements(shape), 0,
                      2 * e, {context_gradient}, {by_head}, true, 2);
  BufferId scores_gradient = builder.activation("probabilities_gradient", scores_elements);
  builder.gemm("context_dgrad", GemmRole::kInputGradient, s, s, d, {by_head, qkv.value},
               {scores_gradient}, batch);
  const BufferId value_gradient = builder.activation("value_gradient", context_elements(shape));
  builder.gemm("value_grad", GemmRole::kInputGradient, s, d, s, {saved.dropped, by_head},
               {value_gradient}, batch);
  if (shape.dropout) {
    builder.elementwise("attention_dropout", ElementwiseKind::kDropoutAdd, scores_elements, 0,
                        2 * e + 1, {scores_gradient, saved.mask}, {scores_gradient}, true);
  }
  const BufferId raw = builder.activation("scores_gradient", scores_elements);
  builder.elementwise("softmax", ElementwiseKind::kSoftmax, scores_elements, s, 3 * e,
                      {scores_gradient, saved.softmax}, {raw}, true);
  const BufferId query_gradient = builder.activation("query_gradient", context_elements(shape));
  const BufferId key_gradient = builder.activation("key_gradient", context_elements(shape));
  builder.gemm("query_grad", GemmRole::kInputGradient, s, d, s, {raw, qkv.key}, {query_gradient},
               batch);
  builder.gemm("key_grad", GemmRole::kInputGradient, s, d, s, {raw, qkv.query}, {key_gradient},
               batch);
  const BufferId gradient = builder.activation("qkv_gradient", qkv_elements(shape));
  builder.elementwise("qkv_gather", ElementwiseKind::kTranspose, qkv_elements(shape), 0, 2 * e,
                      {query_gradient, key_gradient, value_gradient}, {gradient}, true, 3);
  return gradient;
}

}  // namespace

CoreAttentionBuffers core_attention(BlockBuilder& builder, AttentionKernel kernel,
                                    const QkvBuffers& qkv) {
  return kernel == AttentionKernel::kFlash ? flash(builder, qkv) : unfused(builder, qkv);
}

BufferId core_attention_backward(BlockBuilder& builder, AttentionKernel kernel,
                                 const QkvBuffers& qkv, const CoreAttentionBuffers& saved,
                                 BufferId context_gradient) {
  return kernel == AttentionKernel::kFlash
             ? flash_backward(builder, qkv, saved, context_gradient)
             : unfused_backward(builder, qkv, saved, context_gradient);
}

}  // namespace stepcast
