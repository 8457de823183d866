// SPDX-License-Identifier: Apache-2.0
// nccl-tests' words (doc/PERFORMANCE.md): algorithm bandwidth is size over time, bus bandwidth that
// times a factor that makes it the speed of the slowest link, whatever the number of ranks.
#pragma once

#include <cstdint>

#include "cost/collective_model.h"
#include "operation/collective_kind.h"

namespace stepcast {

double bus_factor(CollectiveKind kind, std::int64_t ranks);  // busbw over algbw

}  // namespace stepcast
