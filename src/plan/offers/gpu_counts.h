// SPDX-License-Identifier: Apache-2.0
// Numbers of GPUs as people list them: "64", "64,128,512", "64..4096" (from the low end on, each
// twice the one before), or several of these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"

namespace stepcast {

// Ascending, each once. Errors (of --gpus): no number, none or more than kMaxGpus, a range that
// ends before it begins.
Result<std::vector<std::int64_t>> parse_gpu_counts(const std::string& text);

}  // namespace stepcast
