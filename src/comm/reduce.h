// SPDX-License-Identifier: Apache-2.0
// A reduction puts two numbers together; these functions do it for arrays of them.
#pragma once

#include <span>

#include "comm/communicator.h"

namespace stepcast {

// into[i] = into[i] + other[i], or the larger one; NaN where either is.
void reduce_into(float* into, std::span<const float> other, Reduction reduction);

}  // namespace stepcast
