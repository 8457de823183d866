// SPDX-License-Identifier: Apache-2.0
// A layout of a search as numbers.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace stepcast {

// A layout, or a prefix of one: the values of the open dimensions. Ordered as the tree is walked.
struct LayoutChoice {
  static constexpr std::size_t kMost = 20;
  static constexpr std::int32_t kUnset = -1;
  std::array<std::int32_t, kMost> values;
  LayoutChoice() { values.fill(kUnset); }
  auto operator<=>(const LayoutChoice&) const = default;
};

}  // namespace stepcast
