// SPDX-License-Identifier: Apache-2.0
// Orders that come from running the pipeline: whenever a stage is free it takes the best pass that
// has its input and fits into memory, and a weight gradient where there is none. What counts as
// best is a policy of a few numbers, which a search may turn.
#pragma once

#include <optional>
#include <vector>

#include "schedule/pass.h"

namespace stepcast {

struct PassTimes;
struct Pipeline;

struct GreedyPolicy {
  // Which passes go first where several could run: see kPreferences in the source.
  int preference = 0;
  // So many micro-batches may be between their first forward and their last input gradient.
  std::int64_t in_flight = 1;
  // The first stage begins micro-batches no faster than one in so long.
  double interval = 0;
  // A weight gradient may delay what arrives next by this share of its own time.
  double delay = 0;
  bool operator==(const GreedyPolicy&) const = default;
};
inline constexpr int kGreedyPreferences = 5;

// Stages with one chunk, or with two that are folded. None where stages come to hold so much that
// nothing can run any more.
std::optional<std::vector<StageOrder>> greedy_orders(const Pipeline& pipeline,
                                                     const PassTimes& times,
                                                     const GreedyPolicy& policy);

}  // namespace stepcast
