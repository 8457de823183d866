// SPDX-License-Identifier: Apache-2.0
#include "cost/jitter.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace stepcast {
namespace {

// Expected largest of n standard normal values, n = 1 to 8 (Tippett 1925, table).
constexpr std::array<double, 9> kLargestNormal = {0,      0,      0.5642, 0.8463, 1.0294,
                                                  1.1630, 1.2672, 1.3522, 1.4236};
// The growth beyond 8 per factor e of n, from the same table: 1.7660 for 16 and 2.0697 for 32.
constexpr double kPerEFold = 0.48;

double largest_normal(std::int64_t n) {
  const auto last = static_cast<std::int64_t>(kLargestNormal.size()) - 1;
  if (n <= last) return kLargestNormal[static_cast<std::size_t>(std::max<std::int64_t>(n, 0))];
  return kLargestNormal.back() +
         kPerEFold * std::log(static_cast<double>(n) / static_cast<double>(last));
}

}  // namespace

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
