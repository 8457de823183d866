// SPDX-License-Identifier: Apache-2.0
// Deals layers so that stages compute for as long as each other, with the head that one of them
// has.
#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

struct Scenario;

// Stands alone in Layout::stage_layers until the layout is settled: "balanced".
inline constexpr std::int64_t kBalancedLayers = -1;

// Layers of each model chunk in model order. A stage's load is its layers, and the head's work
// counts as the layers that have as many FLOPs (docs/terminology.md, "Work"); the next layer goes
// to the stage with the least load. Even where a chunk lies on two stages.
std::vector<std::int64_t> balanced_layers(const Scenario& scenario);

}  // namespace stepcast
