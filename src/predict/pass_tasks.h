// SPDX-License-Identifier: Apache-2.0
// A pass as tasks of the engine: what runs on which stream of its rank, what waits for what, what
// the host spends on it, and which collectives meet their group and load links. The one way in
// which a pass becomes more than one macro activity: where it shares links with other traffic, and
// where every operation is replayed by itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "predict/block_replay.h"
#include "program/instruction.h"

namespace stepcast {

struct PassTask {
  Stream stream;
  RunCost cost;  // of a run of operations, or of the wait for the last member; a call has none
  const Operation* call = nullptr;  // a collective that meets its group and loads links
  Seconds host;                     // to issue it
  std::vector<std::int32_t> after;  // earlier tasks on other streams that must have ended
  std::int32_t begin, end;          // its operations, counted through all blocks of the pass
};

struct PassTasks {
  // The first on the computing stream begins the pass, the last one ends it.
  std::vector<PassTask> tasks;
  // A pass that begins so much later than its issue never waits for its host, and takes no less
  // than `least`, whatever shares links with it.
  Seconds lead, least;
  bool has_calls = false;
};

// `blocks` in the order in which they run. Collectives of `groups` are calls, unless they are
// pipelined with a product, which has them in its price. What runs between two calls is one task,
// or one for each operation. Where a block runs operations beside each other, each of those beside
// the computing stream is a task, what is computed is parted where one waits for the other, and an
// empty task waits for all streams before the next block begins.
PassTasks tasks_of(std::span<const std::vector<PricedOperation>* const> blocks,
                   std::span<const AxisGroup> groups, bool each_operation);

}  // namespace stepcast
