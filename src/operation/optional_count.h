// SPDX-License-Identifier: Apache-2.0
// A figure of an operation that most do not have: where it is 0 no text names it.
#pragma once

#include <compare>
#include <cstdint>

namespace stepcast {

struct OptionalCount {
  std::int64_t value = 0;
  auto operator<=>(const OptionalCount&) const = default;
  explicit operator bool() const { return value != 0; }
};

}  // namespace stepcast
