// SPDX-License-Identifier: Apache-2.0
// Shell scripts that start TRL, or a script around Hugging Face's Trainer, with arguments:
// `accelerate launch --config_file fsdp.yaml sft.py --model_name_or_path ...`. The arguments are
// read as the YAML that says the same (read_trl.cpp).
#pragma once

#include <string>

#include "recipes/imported_scenario.h"

namespace stepcast {

bool is_trl_script(const std::string& text);

// Arguments of the launcher count as Accelerate's file beside the script, over which they go.
ImportedScenario read_trl_script(const ImportInput& input);

}  // namespace stepcast
