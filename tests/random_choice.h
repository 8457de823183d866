// SPDX-License-Identifier: Apache-2.0
// One of several, drawn by a seeded generator.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
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

}  // namespace stepcast::testing
