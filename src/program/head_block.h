// SPDX-License-Identifier: Apache-2.0
// Final norm, logits and loss; vocabulary-parallel under tensor parallelism.
#pragma once

#include "layout/scenario.h"
#include "program/program.h"

namespace stepcast {

// `own_table`: the head has a table of its own (untied, or tied across pipeline stages).
Block lower_head(const Scenario& scenario, bool own_table,
                 BackwardForm form = BackwardForm::kWhole);

}  // namespace stepcast
