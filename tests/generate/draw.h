// SPDX-License-Identifier: Apache-2.0
// Choices of a seed, from which scenarios are made.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/seeded_random.h"

namespace stepcast::generate {

class Draw {
 public:
  explicit Draw(SeededRandom random) : random_(random) {}

  std::int64_t below(std::int64_t count) { return random_.below(count); }
  double uniform() { return random_.uniform(); }
  bool chance(double probability) { return random_.uniform() < probability; }

  std::int64_t number(std::initializer_list<std::int64_t> values) {
    return *(values.begin() + below(static_cast<std::int64_t>(values.size())));
  }
  std::string word(std::initializer_list<const char*> values) {
    return *(values.begin() + below(static_cast<std::int64_t>(values.size())));
  }
  template <class T>
  const T& of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(static_cast<std::int64_t>(values.size())))];
  }

  // One of the divisors of `total` up to `most` that `legal` takes; 1 where there is none.
  template <class Legal>
  std::int64_t divisor(std::int64_t total, std::int64_t most, Legal legal) {
    std::vector<std::int64_t> all;
    for (std::int64_t d = 1; d <= std::min(total, most); ++d) {
      if (total % d == 0 && legal(d)) all.push_back(d);
    }
    return all.empty() ? 1 : of(all);
  }
  std::int64_t divisor(std::int64_t total, std::int64_t most) {
    return divisor(total, most, [](std::int64_t) { return true; });
  }

 private:
  SeededRandom random_;
};

}  // namespace stepcast::generate
