// SPDX-License-Identifier: Apache-2.0
// Which groups of ranks communicate inside the blocks of a program.
#pragma once

#include <vector>

#include "program/program.h"

namespace stepcast {

// Ascending, each once.
std::vector<AxisGroup> groups_in_blocks(const Program& program);

}  // namespace stepcast
