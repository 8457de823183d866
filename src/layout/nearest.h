// SPDX-License-Identifier: Apache-2.0
// The legal values next to an illegal one, for hints.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace stepcast {

// The product, or 2^62 when it is larger.
std::int64_t capped_product(std::initializer_list<std::int64_t> factors);

// The divisors of `total` next to `value`: below and above, at most one each.
std::vector<std::int64_t> nearest_divisors(std::int64_t total, std::int64_t value);

// The positive multiples of `unit` next to `value`: below and above, at most one each.
std::vector<std::int64_t> nearest_multiples(std::int64_t unit, std::int64_t value);

// "use 4 or 8"
std::string use(const std::vector<std::int64_t>& values);

}  // namespace stepcast
