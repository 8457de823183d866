// SPDX-License-Identifier: Apache-2.0
// Final norm, logits and loss; vocabulary-parallel under tensor parallelism.
#pragma once

#include "layout/scenario.h"
#include "program/program.h"

namespace stepcast {

Block lower_head(const Scenario& scenario);

}  // namespace stepcast
