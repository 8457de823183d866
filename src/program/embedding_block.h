// SPDX-License-Identifier: Apache-2.0
// Token and position embedding, vocabulary-parallel as in Megatron (Shoeybi et al. 2019, section
// 3).
#pragma once

#include "program/block_builder.h"

namespace stepcast {

struct Scenario;

Block lower_embedding(const Scenario& scenario, BackwardForm form = BackwardForm::kWhole);

// The gradient of a table from that of the rows that were looked up. Autograd writes a dense one,
// zeroes first, then adds it to the main one; without `zeroes` somebody has begun it.
void look_up_backward(BlockBuilder& builder, ParameterId table, BufferId tokens, BufferId gradient,
                      bool zeroes, std::int64_t ahead = 0);

}  // namespace stepcast
