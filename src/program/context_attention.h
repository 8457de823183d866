// SPDX-License-Identifier: Apache-2.0
// Attention without weights over a sequence that context parallelism cuts: every rank holds two
// pieces of it, one from each end, so that causal work is equal (docs/context-parallel.md). Keys
// and values go around a ring, are gathered, or are exchanged for heads; or heads are exchanged
// inside a node and the ring goes across nodes.
#pragma once

#include "program/core_attention.h"

namespace stepcast {

// Heads on this rank before any are exchanged. Those of latent attention have keys and values of
// two widths. `span`: how far back a query sees.
struct ContextHeads {
  std::int64_t heads, kv_heads;
  std::int64_t key_dim, value_dim;
  AttentionSpan span = {};
};

CoreAttentionBuffers context_attention(BlockBuilder& builder, const ContextHeads& heads,
                                       const QkvBuffers& qkv);

// The gradients of queries, keys and values go to `gradient`; one buffer may hold all three.
void context_attention_backward(BlockBuilder& builder, const ContextHeads& heads,
                                const CoreAttentionBuffers& saved, BufferId context_gradient,
                                const QkvBuffers& gradient);

}  // namespace stepcast
