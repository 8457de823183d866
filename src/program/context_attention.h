// SPDX-License-Identifier: Apache-2.0
// Attention without weights over a sequence that context parallelism cuts: every rank holds two
// pieces of it, one from each end, so that causal work is equal (docs/context-parallel.md). Keys
// and values go around a ring, are gathered, or are exchanged for heads; or heads are exchanged
// inside a node and the ring goes across nodes.
#pragma once

#include "program/core_attention.h"

namespace stepcast {

CoreAttentionBuffers context_attention(BlockBuilder& builder, const QkvBuffers& qkv);

BufferId context_attention_backward(BlockBuilder& builder, const CoreAttentionBuffers& saved,
                                    BufferId context_gradient);

}  // namespace stepcast
