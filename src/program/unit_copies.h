// SPDX-License-Identifier: Apache-2.0
// FSDP, and DeepSpeed until 2022, copy these of a block's parameters and gradients, beside the
// collectives that gather and reduce them (docs/frameworks.md). The operations go to the pass at
// hand.
#pragma once

#include "program/block_builder.h"

namespace stepcast {

// Adds the copies behind the gather before a pass.
void copy_gathered_unit(const Scenario& scenario, BlockBuilder& builder);
// Adds the copies before the reduction behind a backward.
void copy_unit_gradients(const Scenario& scenario, BlockBuilder& builder);

}  // namespace stepcast
