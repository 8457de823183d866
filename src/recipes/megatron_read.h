// SPDX-License-Identifier: Apache-2.0
// The parts of reading Megatron's flags; megatron.h has the whole.
#pragma once

#include "recipes/flag_list.h"

namespace stepcast {

void read_megatron_model(FlagList& flags);
void read_megatron_layout(FlagList& flags);
void read_megatron_training(FlagList& flags);

}  // namespace stepcast
