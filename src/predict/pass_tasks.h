// SPDX-License-Identifier: Apache-2.0
// A pass as tasks of the engine: what runs on which stream of its rank, what waits for what, what
// the host spends on it, and which collectives meet their group and load links. The one way in
// which a pass becomes more than one macro activity: where it shares links with other traffic, and
// where every operation is replayed by itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "predict/priced_operation.h"
#include "program/rank_stream.h"
#include "sim/workload.h"

namespace stepcast {

struct PassTask {
  Stream stream;
  RunCost cost;  // of a run of operations, or of the wait for the last member; a call has none
  const Operation* call = nullptr;  // a collective that meets its group and loads links
  Seconds host;                     // to issue it
  std::vector<std::int32_t> after;  // earlier tasks on other streams that must have ended
  std::int32_t begin, end;          // its operations, counted through all blocks of the pass
};

// `blocks` in the order in which they run. The first task on the computing stream begins the pass,
// the last one ends it. Collectives of `groups` are calls, unless they are pipelined with a
// product, which has them in its price. What is computed between two calls is one task, or one for
// each operation. Where a block runs operations beside each other, each of those beside the
// computing stream is a task, what is computed is parted where one waits for the other, and a task
// waits for all streams before the next block begins.
std::vector<PassTask> tasks_of(std::span<const std::span<const PricedOperation>> blocks,
                               std::span<const AxisGroup> groups, bool each_operation);

// One task of a pass in a workload. Invalid: the host is ahead of it.
struct PartTasks {
  sim::TaskId host, device;
};

// A task with a member that is placed.
struct Seat {
  sim::TaskId task;
  std::int32_t member = 0;
};

// Writes a pass into a workload: the one way in which the replay of a block alone, a stamped pass
// and an expanded one come into the engine. issue(Seconds) makes the host's task, or none;
// add(const PassTask&, sim::TaskId issuer) makes the device's and gives its Seat.
template <class Issue, class Add>
std::vector<PartTasks> write_pass(std::span<const PassTask> pass, sim::Workload& workload,
                                  Issue&& issue, Add&& add) {
  std::vector<PartTasks> parts;
  parts.reserve(pass.size());
  for (const PassTask& task : pass) {
    PartTasks& part = parts.emplace_back();
    if (task.begin < task.end) part.host = issue(task.host);
    const Seat seat = add(task, part.host);
    part.device = seat.task;
    for (const std::int32_t before : task.after) {
      workload.depend(parts[static_cast<std::size_t>(before)].device, seat.task, seat.member);
    }
  }
  return parts;
}

}  // namespace stepcast
