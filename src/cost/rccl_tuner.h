// SPDX-License-Identifier: Apache-2.0
// Chooses as RCCL does, among AMD's GPUs: algorithm and protocol of a collective, and a nominal
// latency and bandwidth of them, to which measured curves add (docs/collectives.md, "RCCL").
#pragma once

#include "core/quantity.h"
#include "cost/nccl_tuner.h"
#include "operation/collective_kind.h"

namespace stepcast {

// For all-reduce, all-gather, reduce-scatter and broadcast of two or more ranks.
// `may_be_tree`: the environment does not forbid it.
NcclEstimate rccl_choice(const NcclGraph& graph, CollectiveKind kind, Bytes size, bool may_be_tree);

}  // namespace stepcast
