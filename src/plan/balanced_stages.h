// SPDX-License-Identifier: Apache-2.0
// A search deals the same number of layers to each stage. The first place once more, with stages
// that compute equally long.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/quantity.h"

namespace stepcast {

class Planner;
struct SearchResult;

struct BalancedStages {
  std::vector<std::int64_t> layers;  // of each chunk
  Seconds step_time;
};

// The first place with balanced stages (layout/balanced_layers.h): nothing where the scenario says
// how layers are dealt, where the framework would not launch it, or where it does not fit or is
// faster by a near tie at most.
std::optional<BalancedStages> balance_stages(const Planner& planner, const SearchResult& result);

}  // namespace stepcast
