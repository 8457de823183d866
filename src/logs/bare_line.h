// SPDX-License-Identifier: Apache-2.0
// A line of a log without what launchers and terminals put around it: colors, the rank's tag in
// front, a time in front of that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepcast {

struct BareLine {
  std::string text;
  std::optional<std::int64_t> rank;  // that the launcher names: "0: ", "[rank0]:", "[1,0]<stdout>:"
};

BareLine bare_line(std::string_view line);

}  // namespace stepcast
