// SPDX-License-Identifier: Apache-2.0
// The end of the engine's clock, and the error of a replay that does not end before it.
#pragma once

#include <algorithm>

#include "sim/stall.h"
#include "sim/time.h"

namespace stepcast::sim {

// The longest duration that the clock tells from an endless one: a million seconds, 11 days. A few
// of them add up without overflow. No step that anybody waits for comes near it.
inline constexpr Duration kLongestDuration{1'000'000'000'000'000'000};

// Picoseconds: 92 days. Any moment before it and a longest duration are below what 64 bits hold.
inline constexpr double kClockEnd_ps = 8e18;

// The sum, or the longest duration.
constexpr Duration bounded_sum(Duration a, Duration b) { return std::min(a + b, kLongestDuration); }

// The clock does not reach to the end of the work. `endless` alone takes that long; it is invalid
// where it is the sum of all.
Error clock_error(TaskId endless, const Describer& words);

}  // namespace stepcast::sim
