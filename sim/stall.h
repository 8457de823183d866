// SPDX-License-Identifier: Apache-2.0
// Words for a replay that came to a halt.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "sim/workload.h"

namespace stepcast::sim {

// A task whose rate stays 0, and who holds the resource it needs.
struct Starvation {
  TaskId task;
  ResourceId resource;
  std::vector<TaskId> holders;  // none: the resource has no capacity at all
};

struct Describer {
  std::string (*describe)(TaskId, const void*) = nullptr;
  const void* context = nullptr;
  std::string operator()(TaskId task) const;
};

Error cycle_error(std::span<const TaskId> cycle, const Describer& words);
Error starvation_error(const Starvation& starvation, const Describer& words);

}  // namespace stepcast::sim
