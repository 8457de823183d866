// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/median_interval.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>

#include "core/assert.h"
#include "core/row_types.h"

namespace stepcast {

std::optional<std::int64_t> median_interval_rank(std::int64_t n, double confidence) {
  STEPCAST_ASSERT(confidence > 0 && confidence < 1, "a probability");
  if (n < 1) return std::nullopt;
  const double tail = (1 - confidence) / 2;
  const boost::math::binomial_distribution<double> below(static_cast<double>(n), 0.5);
  const auto covers = [&](std::int64_t rank) {  // P(B < rank) <= tail
    return boost::math::cdf(below, static_cast<double>(rank - 1)) <= tail;
  };
  if (!covers(1)) return std::nullopt;
  // Two standard deviations below the middle, then the exact rank near there.
  const double size = static_cast<double>(n);
  auto rank = std::max<std::int64_t>(1, std::llround(size / 2 - std::sqrt(size)));
  while (rank > 1 && !covers(rank)) --rank;
  while (rank + 1 <= (n + 1) / 2 && covers(rank + 1)) ++rank;
  return rank;
}

std::optional<MedianInterval> median_interval(const std::vector<double>& sorted,
                                              double confidence) {
  const auto n = static_cast<std::int64_t>(sorted.size());
  const auto rank = median_interval_rank(n, confidence);
  if (!rank) return std::nullopt;
  return MedianInterval{sorted[static_cast<std::size_t>(*rank - 1)],
                        sorted[static_cast<std::size_t>(n - *rank)]};
}

Rows MedianInterval::fields() {
  using F = MedianInterval;
  static constexpr Row all[] = {row<&F::low>("low_s").required().within(0, kLongestTime_s),
                                row<&F::high>("high_s").required().within(0, kLongestTime_s)};
  return rows_of<F>(all);
}

}  // namespace stepcast
