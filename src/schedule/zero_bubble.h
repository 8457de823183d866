// SPDX-License-Identifier: Apache-2.0
// The handcrafted rules by which zero-bubble schedules fit weight gradients into what would be idle
// (Qi et al. 2024, arXiv 2401.10241, section 3.1).
#pragma once

#include <vector>

#include "schedule/schedule.h"

namespace stepcast {

// One chunk per stage. A stage holds at most `limit` micro-batches. One whose input gradient is
// there and whose weight gradient is not counts as ChunkTimes::kept says.
std::vector<StageOrder> zero_bubble_orders(const Pipeline& pipeline, const PassTimes& times,
                                           std::int64_t limit);

}  // namespace stepcast
