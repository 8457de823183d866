// SPDX-License-Identifier: Apache-2.0
// From tensors to what the device holds: the caching allocator's rounding and fragmentation, and
// the fixed part of context, libraries and communicators (docs/memory.md).
#pragma once

#include "layout/scenario.h"

namespace stepcast {

// What the caching allocator reserves for a peak of `allocated` bytes of tensors. A process on a
// processor allocates what it needs.
ByteCount reserved_bytes(const Scenario& scenario, ByteCount allocated);

// What a pool of CUDA's, which maps memory in pieces, takes from the device for as much.
ByteCount pooled_bytes(ByteCount allocated);

// CUDA context and libraries, and NCCL's channel buffers of every communicator of the layout; none
// of them on a processor. A rank `alone` has no communicators.
ByteCount framework_bytes(const Scenario& scenario, bool alone = false);

}  // namespace stepcast
