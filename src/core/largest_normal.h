// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace stepcast {

// Expected largest of n independent standard normal values; 0 for n below 2 (Tippett, Biometrika
// 17, 1925).
double largest_normal(std::int64_t n);

}  // namespace stepcast
