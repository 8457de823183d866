// SPDX-License-Identifier: Apache-2.0
// Whether a link's figures are ones that hardware has: a slip of a unit is a factor of 8 or 1000.
#pragma once

#include "core/error.h"

namespace stepcast {

class Topology;

// One error for each kind of link with a capacity or a latency that no hardware has or is announced
// with. It names the first such link and says how many there are.
Errors implausible_links(const Topology& topology);

}  // namespace stepcast
