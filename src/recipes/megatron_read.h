// SPDX-License-Identifier: Apache-2.0
// The parts of reading Megatron's flags; megatron.h has the whole.
#pragma once

#include "recipes/flag_list.h"
#include "recipes/imported_scenario.h"

namespace stepcast {

void read_megatron_model(FlagList& flags);
void read_megatron_layout(FlagList& flags);
void read_megatron_training(FlagList& flags);

// Arguments as Megatron prints them, laid over a model that another file describes.
ImportedScenario read_megatron_overrides(const ImportInput& input);

}  // namespace stepcast
