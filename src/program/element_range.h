// SPDX-License-Identifier: Apache-2.0
// A range of flat elements.
#pragma once

#include <cstdint>

namespace stepcast {

struct ElementRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

}  // namespace stepcast
