// SPDX-License-Identifier: Apache-2.0
#include "core/largest_normal.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace stepcast {
namespace {

// n = 1 to 8 (Tippett 1925, table).
constexpr std::array<double, 9> kLargestNormal = {0,      0,      0.5642, 0.8463, 1.0294,
                                                  1.1630, 1.2672, 1.3522, 1.4236};
// The growth beyond 8 per factor e of n, from the same table: 1.7660 for 16 and 2.0697 for 32.
constexpr double kPerEFold = 0.48;

}  // namespace

double largest_normal(std::int64_t n) {
  const auto last = static_cast<std::int64_t>(kLargestNormal.size()) - 1;
  if (n <= last) return kLargestNormal[static_cast<std::size_t>(std::max<std::int64_t>(n, 0))];
  return kLargestNormal.back() +
         kPerEFold * std::log(static_cast<double>(n) / static_cast<double>(last));
}

}  // namespace stepcast
