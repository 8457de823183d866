// SPDX-License-Identifier: Apache-2.0
// Attention that reads fp8, against the same in 16 bits (docs/fp8.md, "Attention").
#pragma once

#include "cluster/accelerator.h"
#include "operation/attention_parts.h"

namespace stepcast {

// How many times as fast as in bf16 the fused kernel is on this device.
double fp8_attention_speed(const Accelerator& accelerator, const Attention& attention);

}  // namespace stepcast
