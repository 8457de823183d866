// SPDX-License-Identifier: Apache-2.0
#include "cost/jitter.h"

#include <algorithm>
#include <cmath>

#include "core/largest_normal.h"

namespace stepcast {
Jitter& Jitter::operator+=(const Jitter& next) {
  variance_s2 += next.variance_s2;
  tail += next.tail;
  tail_variance_s2 += next.tail_variance_s2;
  return *this;
}

Seconds lag_of_last(const Jitter& jitter, std::int64_t ranks) {
  const double largest = largest_normal(ranks);
  const auto others = static_cast<double>(std::max<std::int64_t>(ranks - 1, 0));
  const double rare = largest * std::sqrt(jitter.variance_s2) + others * jitter.tail.value();
  const double frequent = largest * std::sqrt(jitter.variance_s2 + jitter.tail_variance_s2);
  return Seconds(std::min(rare, frequent));
}

}  // namespace stepcast
