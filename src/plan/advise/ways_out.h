// SPDX-License-Identifier: Apache-2.0
// When no rung meets the demands, this finds what would change that.
#pragma once

#include <vector>

#include "plan/advise/rung_search.h"

namespace stepcast {

// LoRA and QLoRA, whether they fit or not, where full training fits nowhere: on one GPU, or on the
// first rung of all that meets the demands; and the first rung that meets the demands on more GPUs
// of the same kind, doubled until one does, unless money is what is short.
Result<std::vector<RungResult>> ways_out(const AdviceInput& input,
                                         const std::vector<RungResult>& rungs);

}  // namespace stepcast
