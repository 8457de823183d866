// SPDX-License-Identifier: Apache-2.0
// The part of attention without weights: softmax(Q K^T / sqrt(d)) V, fused or as batched GEMMs.
// Selective recomputation drops this part and rebuilds it.
#pragma once

#include "operation/attention_parts.h"
#include "program/block_builder.h"

namespace stepcast {

struct QkvBuffers {
  BufferId query, key, value;
};

// How far a query looks back, where not at all tokens before it; and the learned logits beside
// those of the keys, where there are some.
struct AttentionSpan {
  OptionalCount window = {}, chunk = {};
  ParameterId sinks = {};
};

struct CoreAttentionBuffers {
  BufferId softmax;       // unfused: probabilities; flash: log-sum-exp
  BufferId wide_softmax;  // in fp32, where each step of the softmax is a kernel
  BufferId mask;          // of dropout, one byte an element
  BufferId dropped;       // probabilities after dropout
  BufferId context;       // tokens x heads*head_dim
  // Valid if fused kernels read and wrote other buffers: copies in fp8, what ranks exchanged.
  QkvBuffers read;
  BufferId written;
};

// Casts to fp8, once, what attention reads; it is kept so for the backward.
BufferId cast_for_attention(BlockBuilder& builder, bool backward, std::int64_t elements,
                            BlockBuilder::Buffers from);

// Runs as products and a softmax of their own, of heads whose values may be of another width.
CoreAttentionBuffers unfused_attention(BlockBuilder& builder, const AttentionSizes& sizes,
                                       const QkvBuffers& qkv);
// The gradients of query, key and value, head by head.
QkvBuffers unfused_attention_backward(BlockBuilder& builder, const AttentionSizes& sizes,
                                      const QkvBuffers& qkv, const CoreAttentionBuffers& saved,
                                      BufferId context_gradient);

CoreAttentionBuffers core_attention(BlockBuilder& builder, AttentionKernel kernel,
                                    const QkvBuffers& qkv, const AttentionSpan& span = {});

// Gradients of query, key and value (packed) from the context's.
BufferId core_attention_backward(BlockBuilder& builder, AttentionKernel kernel,
                                 const QkvBuffers& qkv, const CoreAttentionBuffers& saved,
                                 BufferId context_gradient, const AttentionSpan& span = {});

}  // namespace stepcast
