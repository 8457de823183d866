// SPDX-License-Identifier: Apache-2.0
// The Pareto front of a set of points.
#pragma once

#include <cstddef>
#include <vector>

namespace stepcast {

// Returns the indices, in order, of the points that no other point beats: none is as good in every
// coordinate and better in one. Smaller coordinates are better, and all points have equally many.
// If points are equal, the first counts.
std::vector<std::size_t> pareto_front(const std::vector<std::vector<double>>& points);

}  // namespace stepcast
