// SPDX-License-Identifier: Apache-2.0
// The host of rank classes that cost alike, in one step, with as few tasks as possible: every
// kernel and transfer has the same times as with one host task per instruction. Nothing is
// approximated: a host task is left out where it provably binds nothing.
//
// - A kernel or transfer ends no earlier than its own issue allows, and than what it waits for
//   allows. Followed through the step these bounds show where the host must be ahead.
// - A host that waits for transfers becomes a wait of the next host task.
// - A run that waits for the same transfers as the host before it starts as it is issued, so it
//   takes its `floor` and needs no issuer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "predict/transfer_shapes.h"
#include "program/waits.h"

namespace stepcast {

struct HostTask {
  std::int32_t before;  // the instruction that it precedes in issue order
  sim::Duration latency;
  Waits waits = {};  // instructions that must have ended
};

struct HostPlan {
  static constexpr std::int32_t kUnbound = -1;   // the host is ahead
  static constexpr std::int32_t kAsIssued = -2;  // a run: starts as it is issued
  static constexpr std::int32_t kByTask = -3;    // a pass in several tasks: each has its issue
  std::vector<HostTask> tasks;                   // in issue order
  std::vector<std::int32_t> issuer;  // by instruction: into `tasks`, or one of the above
};

// One plan for all of `rank_classes`, of which there is at least one: their runs cost the same
// (RunCosts::table), and a transfer takes no less than the shortest of theirs.
// `shares_processor`: their kernels are slowed by traffic beside them.
HostPlan plan_host(const SimulationInput& input, TransferShapes& shapes,
                   std::span<const std::int32_t> rank_classes, bool shares_processor);

}  // namespace stepcast
