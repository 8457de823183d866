// SPDX-License-Identifier: Apache-2.0
#include "layout/nearest.h"

#include "core/error.h"

namespace stepcast {
namespace {

constexpr std::int64_t kCap = std::int64_t{1} << 62;
constexpr std::int64_t kSearchLimit = 1 << 20;  // degrees are no larger

}  // namespace

std::int64_t capped_product(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product) || product > kCap) return kCap;
  }
  return product;
}

std::vector<std::int64_t> nearest_divisors(std::int64_t total, std::int64_t value) {
  std::vector<std::int64_t> found;
  if (total < 1) return found;
  std::int64_t below = value < total ? value : total;
  if (below > kSearchLimit) below = kSearchLimit;
  while (below >= 1 && total % below != 0) --below;
  if (below >= 1) found.push_back(below);
  const std::int64_t limit = total < kSearchLimit ? total : kSearchLimit;
  for (std::int64_t above = value + 1; above <= limit; ++above) {
    if (total % above == 0) {
      found.push_back(above);
      break;
    }
  }
  return found;
}

std::vector<std::int64_t> nearest_multiples(std::int64_t unit, std::int64_t value) {
  std::vector<std::int64_t> found;
  const std::int64_t below = value / unit * unit;
  if (below > 0) found.push_back(below);
  if (below != value && below < kCap - unit) found.push_back(below + unit);
  return found;
}

std::string use(const std::vector<std::int64_t>& values) {
  std::vector<std::string> words;
  for (const std::int64_t value : values) words.push_back(std::to_string(value));
  return words.empty() ? "" : "use " + one_of(words);
}

}  // namespace stepcast
