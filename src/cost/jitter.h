// SPDX-License-Identifier: Apache-2.0
// How the time of an operation varies from call to call on a machine that its program does not have
// to itself, and what that costs ranks that wait for each other.
#pragma once

#include <cstdint>

#include "core/quantity.h"

namespace stepcast {

inline constexpr double kP10ToP90 = 2.5631;  // standard deviations of a normal distribution

// How much the times of calls scatter. For independent calls one after another, add each member.
struct Jitter {
  double variance_s2 = 0;       // of the body of the distribution
  Seconds tail;                 // the mean's distance from the median: rare disturbances
  double tail_variance_s2 = 0;  // of these disturbances

  Jitter& operator+=(const Jitter& next);
};

// How long after the mean the last of `ranks` arrives, when each has been through such calls.
//
// The bodies of the distributions add up to a normal one, whose expected largest of n is known
// (Tippett, Biometrika 17, 1925). A rare disturbance hits one rank at a time and all others wait
// for it, which costs n - 1 times the mean of one rank. Frequent disturbances add up like the
// bodies, and so do their variances. The smaller of the two estimates counts: the deviation
// overestimates rare disturbances, the mean frequent ones.
Seconds lag_of_last(const Jitter& jitter, std::int64_t ranks);

}  // namespace stepcast
