// SPDX-License-Identifier: Apache-2.0
// Types of the keys of `training` whose values are more than a number, a truth or a name.
#pragma once

#include "layout/keys.h"

namespace stepcast {

extern const KeyType kReleaseMonth;  // as 2024-07
extern const KeyType kCudaGraphs;    // true, false, or which kernels
extern const KeyType kLoraTargets;   // a list of products

// "2024-07"; the release is a month, not the newest.
std::string to_string(Release release);

}  // namespace stepcast
