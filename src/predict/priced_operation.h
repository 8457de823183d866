// SPDX-License-Identifier: Apache-2.0
// One operation of a block's pass with its price: what predict/block_replay.h replays and
// predict/pass_tasks.h turns into tasks of the step.
#pragma once

#include <algorithm>
#include <memory>
#include <span>

#include "operation/operation.h"
#include "predict/run_cost.h"
#include "predict/sibling_links.h"

namespace stepcast {

// A collective sends this beside its siblings, who send in step with it.
struct SiblingFlow {
  std::shared_ptr<const SiblingLinks> links;       // null: it shares none
  const std::vector<SiblingUses>* uses = nullptr;  // in `links`, by group: its own first
  Seconds latency;
  Bytes work;
  BytesPerSecond rate_bound;
  double share = 1;
};

struct PricedOperation {
  const Operation* operation;
  RunCost cost;      // alone; after settle(), beside what it shares with
  Seconds lag = {};  // of a collective's cost: until the last member has come
  double held = 0;   // of a collective: the fraction of the processor that kernels beside it lack
  SiblingFlow siblings = {};

  // One of so many equal parts of what a collective moves.
  PricedOperation in_parts(double parts) const {
    PricedOperation out = *this;
    out.cost = cost.exposed(cost.gpu / parts);
    out.siblings.latency = siblings.latency / parts;
    out.siblings.work = siblings.work / parts;
    return out;
  }
};

inline bool runs_beside(const PricedOperation& priced) {
  return priced.operation->stream != BlockStream::kCompute;
}

// All of them run one after the other.
inline bool on_one_stream(std::span<const PricedOperation> operations) {
  return std::ranges::all_of(operations, [&](const PricedOperation& priced) {
    return priced.operation->stream == operations.front().operation->stream;
  });
}

}  // namespace stepcast
