// SPDX-License-Identifier: Apache-2.0
// The orders of all schedules that run on a pipeline as it is: what `auto` begins with.
#pragma once

#include <vector>

#include "schedule/pass.h"

namespace stepcast {

struct PassTimes;
struct Pipeline;

// Its schedules have as many chunks per stage, in the same places.
std::vector<std::vector<StageOrder>> other_orders(const Pipeline& pipeline, const PassTimes& times);

}  // namespace stepcast
