// SPDX-License-Identifier: Apache-2.0
// The input of SwiGLU that waits for the backward in fp8, and comes back in the type that it had:
// no scale, since e4m3 holds what activations are (Megatron-LM, core/fusions/fused_bias_swiglu.py,
// fp8_input_store).
#pragma once

#include "program/block_builder.h"

namespace stepcast {

// The copy that waits, behind the activation that read the wide one.
BufferId store_in_fp8(BlockBuilder& builder, BufferId wide, std::int64_t elements);
// The wide one for the backward, or for an activation that is made again.
BufferId restore_from_fp8(BlockBuilder& builder, BufferId stored, std::int64_t elements);

}  // namespace stepcast
