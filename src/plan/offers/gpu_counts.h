// SPDX-License-Identifier: Apache-2.0
// Numbers of GPUs as people list them: "64", "64,128,512", "64..4096" (from the low end on, each
// twice the one before), or several of these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"

namespace stepcast {

// The numbers in ascending order, each once. It is an error of --gpus when a word is no number, is
// 0 or more than kMaxGpus, or is a range that ends before it begins.
Result<std::vector<std::int64_t>> parse_gpu_counts(const std::string& text);

}  // namespace stepcast
