// SPDX-License-Identifier: Apache-2.0
// V schedules made from a building block (Qi et al. 2024, arXiv 2405.15362): on every stage the
// passes of one micro-batch have fixed slots of time, and the next micro-batch repeats them six
// slots later. How far the slots of a micro-batch lie apart is what a stage holds in memory. Then
// passes of the beginning and the end move to earlier free slots, as long as no stage holds more.
// Only the order is kept, so that it is the same whatever passes take.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "schedule/pass.h"

namespace stepcast {

struct Pipeline;

// Slots of micro-batch 0 on one stage: forward on the way down, forward on the way up, gradient of
// the chunk on the way up, gradient of the chunk on the way down.
using BlockSlots = std::array<std::int64_t, 4>;

// Input gradients take a slot of the block, and weight gradients the free slots behind them.
std::vector<StageOrder> split_block_orders(const Pipeline& pipeline,
                                           const std::vector<BlockSlots>& block);

// Backwards run whole, and take the slot behind their own as well.
std::vector<StageOrder> whole_block_orders(const Pipeline& pipeline,
                                           const std::vector<BlockSlots>& block);

}  // namespace stepcast
