// SPDX-License-Identifier: Apache-2.0
// One generator per schedule: the order of one stage. A new schedule is one file and one row of the
// table in schedule.cpp.
#pragma once

#include <cstdint>

#include "schedule/schedule.h"

namespace stepcast {

StageOrder gpipe_order(const Layout& layout, std::int64_t stage, std::int64_t micro_batches);
StageOrder one_forward_one_backward_order(const Layout& layout, std::int64_t stage,
                                          std::int64_t micro_batches);
StageOrder interleaved_order(const Layout& layout, std::int64_t stage, std::int64_t micro_batches);

}  // namespace stepcast
