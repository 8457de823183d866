// SPDX-License-Identifier: Apache-2.0
#include "plan/ranking.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <tuple>

#include "layout/keys.h"
#include "plan/layout_choice.h"
#include "plan/space.h"

namespace stepcast {

Simplicity simplicity(const Space& space, const LayoutChoice& choice, ByteCount memory,
                      Scenario& scenario) {
  Simplicity out{.memory = memory};
  const auto& dimensions = space.dimensions();
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i]->adds == KeySearch::Adds::kNothing) continue;
    if (space.default_of(i, choice, scenario) == choice.values[i]) continue;
    (dimensions[i]->adds == KeySearch::Adds::kAxis ? out.axes : out.flags) += 1;
  }
  return out;
}

std::vector<std::size_t> order_of_places(std::span<const double> values,
                                         std::span<const Simplicity> simplicities) {
  std::vector<std::size_t> left(values.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  std::ranges::stable_sort(left, {}, [&](std::size_t i) { return values[i]; });
  const auto simpler = [&](std::size_t a, std::size_t b) {
    const Simplicity &x = simplicities[a], &y = simplicities[b];
    return std::tie(x.axes, x.flags, values[a], x.memory) <
           std::tie(y.axes, y.flags, values[b], y.memory);
  };
  std::vector<std::size_t> out;
  while (!left.empty()) {
    const double most = values[left.front()] * (1 + kNearTie);
    const auto beyond = std::ranges::find_if(left, [&](std::size_t i) { return values[i] > most; });
    const std::size_t first = *std::min_element(left.begin(), beyond, simpler);
    const auto shares = [&](std::size_t i) {
      return values[i] == values[first] && simplicities[i].memory == simplicities[first].memory;
    };
    const auto begin = static_cast<std::ptrdiff_t>(out.size());
    std::ranges::copy_if(left, std::back_inserter(out), shares);
    std::stable_sort(out.begin() + begin, out.end(), simpler);
    std::erase_if(left, shares);
  }
  return out;
}

}  // namespace stepcast
