// SPDX-License-Identifier: Apache-2.0
// Why a task ended when it did: the chain of tasks, each starting as its predecessor ends (or is
// issued), back to the beginning. The times of the chain add up to the task's end.
#pragma once

#include <vector>

#include "sim/engine.h"

namespace stepcast::sim {

struct PathSegment {
  TaskId task;
  Duration time;
};

// Earliest segment first. Where several predecessors end at the same instant, dependencies come
// before the stream's order, in order of adding.
std::vector<PathSegment> critical_path(const Workload& workload, const Replay& replay, TaskId last);

}  // namespace stepcast::sim
