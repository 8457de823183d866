// SPDX-License-Identifier: Apache-2.0
// A part of a search: some values of one key.
#pragma once

#include <cstdint>
#include <string>

namespace stepcast {

// A part of a space: a dimension takes only values from `least` to `most`.
struct ValueRange {
  std::string path;  // "layout.tp"
  std::int64_t least, most;
};

}  // namespace stepcast
