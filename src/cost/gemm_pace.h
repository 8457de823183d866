// SPDX-License-Identifier: Apache-2.0
// How much slower products are in a step than in a short run, by the number of GPUs that take part.
#pragma once

#include <cstdint>

namespace stepcast {

struct GemmFit;

// The form with `back_to_back` for a step on so many GPUs. One alone has `back_to_back_alone`,
// which is measured: its power limit, and nothing else. From eight on it is what recorded runs
// imply, where the slowest of all chips, heat, and links that draw power take their part. Nobody
// has told these apart; between one GPU and eight the factor grows with the logarithm, as the
// slowest of a few does. Without `back_to_back_alone` the form stays as it is.
// `vboost`: the boost slider gives the cores power of the memory, so that products meet the power
// limit later.
GemmFit among(GemmFit fit, std::int64_t gpus, bool vboost = false);

}  // namespace stepcast
