// SPDX-License-Identifier: Apache-2.0
// Which layers of a chunk are recomputed, and what of them: what the lowering deals and the
// planner's bound counts.
#pragma once

#include <cstdint>

#include "layout/layout.h"

namespace stepcast {

// How a layer is recomputed: `layer` counts through the model, `index_in_chunk` through its chunk.
RecomputeMode recompute_of(const Recompute& recompute, std::int64_t layer,
                           std::int64_t index_in_chunk);

// Lists what a layer recomputes by parts: nothing if `mode` recomputes none of it, or all.
RecomputedModules recomputed_modules(const Recompute& recompute, RecomputeMode mode);

// How many layers of a chunk are recomputed that holds [first, first + count) of the model.
std::int64_t recomputed_layers(const Recompute& recompute, std::int64_t first, std::int64_t count);

}  // namespace stepcast
