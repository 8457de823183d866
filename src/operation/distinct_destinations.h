// SPDX-License-Identifier: Apache-2.0
// A token goes to `copies` experts, each at one of `places` equally likely ones. It visits so many
// distinct places in the mean, G (1 - (1 - 1/G)^K): the copies that a dispatcher sends which sends
// a token once to each (docs/moe.md, "Messages").
#pragma once

#include <cmath>

namespace stepcast {

inline double distinct_destinations(double places, double copies) {
  return places * (1 - std::pow(1 - 1 / places, copies));
}

}  // namespace stepcast
