// SPDX-License-Identifier: Apache-2.0
// Prediction modules in the chunk before the head's (layout.mtp_apart): they hand the hidden states
// of the model and their own, one behind the other, to the head, which has the losses of all.
#pragma once

#include <cstdint>

#include "program/block.h"

namespace stepcast {

struct Scenario;

Block lower_predictions(const Scenario& scenario, BackwardForm form = BackwardForm::kWhole);

// Hidden states that cross to the head, of the model and of its modules apart: 1 where there are
// none.
std::int64_t hidden_states_of_head(const Scenario& scenario);

}  // namespace stepcast
