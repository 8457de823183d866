// SPDX-License-Identifier: Apache-2.0
// The phases of a step: the time of an operation counts as one of them.
#pragma once

namespace stepcast {

enum class Phase { kForward, kRecompute, kBackward, kWeightGradient, kOptimizer };
inline constexpr int kPhases = 5;
const char* name_of(Phase phase);  // "weight_gradient"

}  // namespace stepcast
