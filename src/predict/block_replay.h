// SPDX-License-Identifier: Apache-2.0
// One pass of a block, replayed alone on the engine with the tasks of predict/pass_tasks.h: what
// runs beside what, what shares the processor or a link, and what the computing stream waits for,
// falls out of that replay. The result is a macro activity (predict/run_cost.h) that composes with
// the passes before and after it, because a pass begins when the one before it has ended on all its
// streams.
#pragma once

#include <span>
#include <vector>

#include "predict/pass_tasks.h"
#include "sim/engine.h"

namespace stepcast {

// Gives each operation the time that it takes beside the others, if all streams are free and the
// host is ahead: kernels lose the SMs of collectives beside them, and collectives share links with
// the siblings of their group. Where that is longer than the clock runs nothing changes.
void settle(std::span<PricedOperation> operations);

// The pass with a task for each operation.
inline std::vector<PassTask> each_operation_of(std::span<const PricedOperation> block) {
  return tasks_of({&block, 1}, {}, true);
}

// The whole pass. Its parts add up to RunCost::gpu: time on the computing stream counts as what the
// operation is priced as, time in which that stream waits counts as what it waits for.
RunCost replay_block(std::span<const PricedOperation> operations);

// When each task runs, from the begin of the pass, if the streams are free and calls take no time.
// The host is ahead, or issues task by task. Empty where that is longer than the clock runs, which
// the replay of the step then says by name.
std::vector<sim::Interval> replay_alone(std::span<const PassTask> pass, bool host_issues = false);

// A pass that begins `lead` later than its issue never waits for its host, and takes no less than
// `least`, whatever shares links with it.
struct PassBounds {
  Seconds lead, least;
};
PassBounds bounds_of(std::span<const PassTask> pass);

struct PassTasks {
  std::vector<PassTask> tasks;
  PassBounds bounds;
};

}  // namespace stepcast
