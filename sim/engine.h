// SPDX-License-Identifier: Apache-2.0
// Replays a workload. At one instant: first all completions, then all starts, then one max-min
// solve; so the order of simultaneous events never matters. No decision depends on ids.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "sim/workload.h"

namespace stepcast::sim {

struct Interval {
  Time posted;  // the last member's posting
  Time start;   // = posted
  Time end;
};

struct Replay {
  std::vector<Interval> tasks;  // by TaskId
  Time end;
  std::uint64_t events = 0;  // starts and completions processed
};

// From this moment the task does its work at this rate; 0 once the work is done.
struct RateChange {
  Time at;
  TaskId task;
  double rate;
};

// Runs to the end. A workload that cannot finish (a cycle over streams, dependencies and issuers; a
// resource that is held for ever) gives an error that names the tasks of one cycle; `describe`
// turns a task into words for it. `rates`, when given, receives the rates of all tasks that use
// resources, in order of time. Asks now and then whether to stop (core/work_limits.h).
Result<Replay> replay(const Workload& workload,
                      std::string (*describe)(TaskId, const void*) = nullptr,
                      const void* context = nullptr, std::vector<RateChange>* rates = nullptr);

// Does the check for cycles alone, in the graph of stream order, dependencies and issuers with each
// task as one vertex. Returns the tasks of one cycle, in which each waits for the one before it and
// the first for the last; empty when the workload is sound.
std::vector<TaskId> find_cycle(const Workload& workload);

}  // namespace stepcast::sim
