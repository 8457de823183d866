// SPDX-License-Identifier: Apache-2.0
// Token and position embedding, vocabulary-parallel as in Megatron (Shoeybi et al. 2019, section
// 3).
#pragma once

#include "layout/scenario.h"
#include "program/program.h"

namespace stepcast {

Block lower_embedding(const Scenario& scenario, BackwardForm form = BackwardForm::kWhole);

}  // namespace stepcast
