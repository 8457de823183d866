// SPDX-License-Identifier: Apache-2.0
// DeepSpeed's JSON configuration, both ways. Keys, defaults and rules: deepspeedai/DeepSpeed,
// deepspeed/runtime/config.py, runtime/zero/config.py, runtime/tensor_parallel/config.py (2025).
#pragma once

#include <string>
#include <vector>

#include "recipes/imported_scenario.h"

namespace stepcast {

struct Scenario;

// Writes what the file has no key for under its key "stepcast", which DeepSpeed does not read.
std::string write_deepspeed(const Scenario& scenario, const std::vector<Setting>& remarks);
ImportedScenario read_deepspeed(const ImportInput& input);
Errors check_deepspeed(const Scenario& scenario);

}  // namespace stepcast
