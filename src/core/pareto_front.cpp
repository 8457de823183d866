// SPDX-License-Identifier: Apache-2.0
#include "core/pareto_front.h"

#include <algorithm>
#include <numeric>

namespace stepcast {

std::vector<std::size_t> pareto_front(const std::vector<std::vector<double>>& points) {
  // In lexicographic order nothing is dominated by what comes after it.
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return points[a] < points[b]; });
  std::vector<std::size_t> front;
  for (const std::size_t index : order) {
    const std::vector<double>& point = points[index];
    const bool beaten = std::any_of(front.begin(), front.end(), [&](std::size_t held) {
      return std::equal(point.begin(), point.end(), points[held].begin(),
                        [](double own, double better) { return better <= own; });
    });
    if (!beaten) front.push_back(index);
  }
  std::sort(front.begin(), front.end());
  return front;
}

}  // namespace stepcast
