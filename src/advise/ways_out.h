// SPDX-License-Identifier: Apache-2.0
// Where no rung meets the demands: what would change that.
#pragma once

#include <vector>

#include "advise/rung_search.h"

namespace stepcast {

// LoRA and QLoRA on one GPU, whether they fit or not, where full training fits nowhere; and the
// first rung that meets the demands on more GPUs of the same kind, doubled until one does, unless
// money is what is short.
Result<std::vector<RungResult>> ways_out(const AdviceInput& input,
                                         const std::vector<RungResult>& rungs);

}  // namespace stepcast
