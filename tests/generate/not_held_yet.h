// SPDX-License-Identifier: Apache-2.0
// The properties that some scenario still violates. Tests do not ask them; a hunt does.
#pragma once

#include <array>
#include <string_view>

namespace stepcast::generate {

inline constexpr std::array<std::string_view, 1> kNotHeldYet = {
    // Under work: it is 0.26 % longer where ZeRO 3 gathers beside kernels.
    "faster_arithmetic",
};

}  // namespace stepcast::generate
