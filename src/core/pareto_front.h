// SPDX-License-Identifier: Apache-2.0
// What is best in one regard or another.
#pragma once

#include <cstddef>
#include <vector>

namespace stepcast {

// Of points of equal length, whose coordinates are all the better the smaller they are: the indices
// of those that no other point matches in every coordinate and beats in one, in order. Of points
// that are equal the first.
std::vector<std::size_t> pareto_front(const std::vector<std::vector<double>>& points);

}  // namespace stepcast
