// SPDX-License-Identifier: Apache-2.0
// Says in which order found layouts stand. A forecast does not tell two layouts apart that differ
// by less than its own error: among near ties the simpler one goes first.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/quantity.h"

namespace stepcast {

class Space;
struct LayoutChoice;
struct Scenario;

inline constexpr double kNearTie = 0.01;  // of the value that ranks

// Less is simpler: fewer axes, then fewer flags. Equal values with equal memory are told apart by
// nothing.
struct Simplicity {
  int axes = 0;
  int flags = 0;
  ByteCount memory = 0;
  bool operator==(const Simplicity&) const = default;
};

// Counts the searched keys whose value is not the one that they would have if they were left out.
// `scenario` is scratch, a copy of the space's base.
Simplicity simplicity(const Space& space, const LayoutChoice& choice, ByteCount memory,
                      Scenario& scenario);

// The order of layouts with these values (less is better): each place goes to the simplest of those
// within kNearTie of the best that is left, and is shared by those that a forecast does not tell
// apart from it (the same value and memory).
std::vector<std::size_t> order_of_places(std::span<const double> values,
                                         std::span<const Simplicity> simplicities);

}  // namespace stepcast
