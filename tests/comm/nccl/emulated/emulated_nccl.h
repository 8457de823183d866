// SPDX-License-Identifier: Apache-2.0
// NCCL among threads, stricter than the library: an operation meets the operation with the same
// number on every other member, and members whose operations differ find an asynchronous error
// (ncclInvalidUsage) where the library hangs or mixes data. A message waits for its partner however
// small it is, so that exchanges outside a group stand still. Work ends when it is done or when its
// own communicator is aborted; a peer that has died (was aborted) is ncclRemoteError.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "nccl.h"

namespace stepcast::emulated {

// Seconds that an operation takes once its last member has come: its name ("AllReduce", "Send",
// ...), its bytes as nccl-tests count them, the ranks of its communicator. 0 unless set.
using NcclCost = std::function<double(const std::string& name, double bytes, int ranks)>;
void set_nccl_cost(NcclCost cost);

// Counts what is in use in the process; a test that leaves something behind sees it here.
struct NcclUse {
  int communicators = 0;
  int registrations = 0;  // buffers and windows
  int allocations = 0;
};
NcclUse nccl_use();

}  // namespace stepcast::emulated
