// SPDX-License-Identifier: Apache-2.0
// Rules that several frameworks have in common.
#pragma once

#include "layout/framework.h"

namespace stepcast {

// 16-bit training holds 16-bit parameters, and an fp32 copy of them beside.
FrameworkRules half_precision_rules(const Training& training);

// The activation between stages is equal on all tensor ranks unless sequence parallelism has cut
// it, so each sends 1/tp and the receivers gather (arXiv 2104.04473, section 4.1).
bool scatters_p2p(const Layout& layout);

// Several chunks on each stage, taken in turn, so that transfers can hide behind other passes.
bool interleaves(const Layout& layout);

// What Megatron's model code does, in whatever framework it runs.
void add_megatron_model(FrameworkRules& rules);

}  // namespace stepcast
