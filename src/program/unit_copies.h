// SPDX-License-Identifier: Apache-2.0
// FSDP, and DeepSpeed until 2022, copy these of a block's parameters and gradients, beside the
// collectives that gather and reduce them (docs/frameworks.md). The operations go to the pass at
// hand.
#pragma once

#include "program/block_builder.h"

namespace stepcast {

struct Scenario;

// Adds the copies behind the gather before a pass, where each pass gathers.
void copy_gathered_unit(const Scenario& scenario, BlockBuilder& builder);
// Adds the copies before the reduction behind a backward. Where gradients of micro-batches wait for
// one reduction, adds their sum instead.
void copy_unit_gradients(const Scenario& scenario, BlockBuilder& builder);

// Copies at the ends of a step where units stay gathered in between: of a gathered unit of so many
// bytes, or of so many summed gradients.
Block lower_gathered_copy(const Scenario& scenario, ByteCount bytes);
Block lower_reduced_copy(const Scenario& scenario, std::int64_t elements);

}  // namespace stepcast
