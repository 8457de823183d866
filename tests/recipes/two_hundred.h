// SPDX-License-Identifier: Apache-2.0
// How many random scenarios a test of a format exports, and how many it may draw for that.
#pragma once

namespace stepcast::testing {

inline constexpr int kAccepted = 200, kMostDraws = 4000;

}  // namespace stepcast::testing
