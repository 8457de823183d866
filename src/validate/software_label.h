// SPDX-License-Identifier: Apache-2.0
// What the label `training.software` of a recorded run says of the code that ran. A forecast takes
// no notice of the label: here it stands for keys that the case leaves out.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace stepcast {

// "llm-foundry 2023-10 (Triton flash attention)": fills in `release` and `attention_kernel`, unless
// they are stated. `training` is the object of the scenario.
void take_from_label(nlohmann::json& training);

}  // namespace stepcast
