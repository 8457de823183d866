// SPDX-License-Identifier: Apache-2.0
// The kernels of a layer of experts on arrays of their own: every expert has as many rows as the
// next, or one more, and rows lie where their tokens' places mix.
#pragma once

#include "calibrate/measure/scratch_arrays.h"

namespace stepcast {

void call_of_experts(const RouterScores& scores, ScratchArrays& arrays, Kernels& kernels);
// The move alone: the router's choice becomes places of rows beside it (choose_rows()).
void call_of_experts(const TokenPermutation& moved, ScratchArrays& arrays, Kernels& kernels);
void call_of_experts(const GroupedGemm& grouped, ScratchArrays& arrays, Kernels& kernels);
void call_of_experts(const ExpertActivation& activation, ScratchArrays& arrays, Kernels& kernels);

}  // namespace stepcast
