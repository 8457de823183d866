// SPDX-License-Identifier: Apache-2.0
// Fine-tuning with adapters as data files of the trainers that people use for it: PEFT and TRL with
// accelerate, and torchtune. They are written and not read.
#pragma once

#include <vector>

#include "core/result.h"
#include "recipes/kubernetes.h"

namespace stepcast {

struct Scenario;

// accelerate.yaml, TRL's sft.yaml and PEFT's adapter_config.json. Errors name the key: a scenario
// without adapters, and what the trainer has no word for.
Result<std::vector<LaunchFile>> peft_files(const Scenario& scenario);

// A recipe of torchtune, lora_finetune_single_device or lora_finetune_distributed. Errors: also a
// model that torchtune has no builder for.
Result<std::vector<LaunchFile>> torchtune_files(const Scenario& scenario);

}  // namespace stepcast
