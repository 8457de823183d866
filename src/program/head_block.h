// SPDX-License-Identifier: Apache-2.0
// Final norm, logits and loss; vocabulary-parallel under tensor parallelism.
#pragma once

#include "program/block.h"

namespace stepcast {

struct Scenario;

Block lower_head(const Scenario& scenario, BackwardForm form = BackwardForm::kWhole);

}  // namespace stepcast
