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
  double tail_variance_s2 = 0;  // of those

  Jitter& operator+=(const Jitter& next);
};

// By how much the last of `ranks` that have each been through such calls comes after their mean.
//
// The bodies add up to a normal distribution, of whose largest of n the expectation is known
// (Tippett, Biometrika 17, 1925). Disturbances that are rare hit one rank at a time, and all wait
// for it: n - 1 times the mean of one rank. Frequent ones add up like the bodies do, and their
// variances with those. The smaller of the two counts: of rare ones the deviation says too much, of
// frequent ones the mean.
Seconds lag_of_last(const Jitter& jitter, std::int64_t ranks);

}  // namespace stepcast
