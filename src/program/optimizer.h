// SPDX-License-Identifier: Apache-2.0
// The end of a step as blocks: zeroing gradients, their norm, clipping, AdamW.
#pragma once

#include "layout/scenario.h"
#include "program/program.h"

namespace stepcast {

// `elements` of the stage on this rank, before ZeRO.
Block lower_zero_gradients(const Scenario& scenario, std::int64_t elements);
Block lower_gradient_norm(const Scenario& scenario, std::int64_t elements);
Block lower_update(const Scenario& scenario, std::int64_t elements);

// Gradients of `elements` parameters cast to the precision that reduces them.
Block lower_gradient_cast(const Scenario& scenario, std::int64_t elements);

}  // namespace stepcast
