// SPDX-License-Identifier: Apache-2.0
// Walks the ladder: finds the first rung that meets the demands, says which demand each rung below
// misses, and what the rungs above would gain (docs/advise.md).
#pragma once

#include <optional>
#include <vector>

#include "plan/advise/rung_search.h"

namespace stepcast {

struct Advice {
  Demands demands;
  std::vector<RungResult> rungs;       // from the lowest up
  std::optional<std::size_t> advised;  // of `rungs`
  std::vector<RungResult> ways_out;    // without an advice: what would change things
  bool interrupted = false;            // before all was tried
};

// All rungs that use several GPUs use all of them. One GPU of many is advised only where a deadline
// or a throughput is demanded and met, or where nothing else meets the demands.
// Errors: of a forecast, or, where every rung is refused, why.
Result<Advice> advise(const AdviceInput& input);

// A rung that is this many times as fast is taken in place of a simpler one, where no demand says
// what is fast enough: the simpler one would take a fifth of the GPUs for nothing.
inline constexpr double kWorthItsComplexity = 1.25;

// How many times as fast a rung has to be to be called faster. A smaller difference may have
// reasons that no forecast sees.
inline constexpr double kNoticeableSpeed = 1.02;

// The lowest rung above the advice that meets the demands and is as good as the fastest of them;
// nullptr when none does.
const RungResult* best_above(const Advice& advice);

// How many times as fast as `other` it trains.
double speed_against(const RungResult& one, const RungResult& other);

}  // namespace stepcast
