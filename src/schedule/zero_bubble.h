// SPDX-License-Identifier: Apache-2.0
// The handcrafted rules by which zero-bubble schedules fit weight gradients into what would be idle
// (Qi et al. 2024, arXiv 2401.10241, section 3.1).
#pragma once

#include <vector>

#include "schedule/pass.h"

namespace stepcast {

struct PassTimes;
struct Pipeline;

// One chunk per stage; empty where nothing can run within the limit. A stage holds at most `limit`
// micro-batches. One whose input gradient is there and whose weight gradient is not counts as
// ChunkTimes::kept says.
std::vector<StageOrder> zero_bubble_orders(const Pipeline& pipeline, const PassTimes& times,
                                           std::int64_t limit);

// Two chunks per stage, down and up again. A stage holds at most `limit` chunks of micro-batches,
// counted likewise, or as few as uneven ones can do with.
std::vector<StageOrder> zero_bubble_v_orders(const Pipeline& pipeline, const PassTimes& times,
                                             std::int64_t limit);

}  // namespace stepcast
