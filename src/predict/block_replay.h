// SPDX-License-Identifier: Apache-2.0
// One pass of a block, replayed once on the streams that its operations name: what runs beside
// what, and what the computing stream waits for, falls out of that replay. The result is a macro
// activity (predict/run_cost.h) that composes with the passes before and after it, because a pass
// begins when the one before it has ended on all its streams.
#pragma once

#include <span>
#include <vector>

#include "predict/run_cost.h"

namespace stepcast {

// One operation with the price that it has alone.
struct PricedOperation {
  const Operation* operation;
  RunCost cost;
  Seconds lag = {};  // of a collective's cost: until the last member has come
  double held = 0;   // of a collective: the fraction of the processor that kernels beside it lack
};

// Lengthens what is computed while collectives beside it hold a part of the processor: what a
// replay on the engine says, whose streams begin free together, as they do at the begin of a pass.
void slow_beside(std::span<PricedOperation> operations);

// All of them run one after the other.
bool on_one_stream(std::span<const PricedOperation> operations);

// The whole pass. Its parts add up to RunCost::gpu: time on the computing stream counts as what the
// operation is priced as, time in which that stream waits counts as what it waits for.
RunCost replay_block(std::span<const PricedOperation> operations);

struct OperationSpan {
  Seconds start, end;
};
// When each runs if the streams are free at `begin`, the host is ahead, and all of it takes
// `stretch` times as long as it is priced.
std::vector<OperationSpan> replay_spans(std::span<const PricedOperation> operations, Seconds begin,
                                        double stretch);

}  // namespace stepcast
