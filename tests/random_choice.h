// SPDX-License-Identifier: Apache-2.0
// One of several, drawn by a seeded generator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "core/seeded_random.h"

namespace stepcast::testing {

template <class T>
const T& one_of(const std::vector<T>& list, SeededRandom& random) {
  return list[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(list.size())))];
}

inline int pick(std::mt19937& random, std::initializer_list<int> values) {
  return *(values.begin() +
           std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random));
}

// Draws of a class that makes up scenarios: the same ones for the same seed.
class Draws {
 protected:
  explicit Draws(std::uint32_t seed) : random_(seed) {}

  std::int64_t pick(std::initializer_list<std::int64_t> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random_() % values.size()));
  }
  std::string word(std::initializer_list<const char*> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random_() % values.size()));
  }
  bool chance(int in) { return random_() % static_cast<std::uint32_t>(in) == 0; }

  std::mt19937 random_;
};

}  // namespace stepcast::testing
