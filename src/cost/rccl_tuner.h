// SPDX-License-Identifier: Apache-2.0
// Chooses as RCCL does, among AMD's GPUs: algorithm and protocol of a collective, and a nominal
// latency and bandwidth of them, to which measured curves add (docs/collectives.md, "RCCL").
#pragma once

#include <array>

#include "core/quantity.h"
#include "cost/nccl_tuner.h"
#include "operation/collective_kind.h"

namespace stepcast {

// The environment lets them run, by protocol.
struct RcclAllowed {
  std::array<bool, 3> ring = {true, true, true}, tree = {true, true, true};
};

// For all-reduce, all-gather, reduce-scatter and broadcast of two or more ranks. Where no protocol
// of a ring is allowed, the ring runs all the same.
NcclEstimate rccl_choice(const NcclGraph& graph, CollectiveKind kind, Bytes size,
                         const RcclAllowed& allowed);

}  // namespace stepcast
