// SPDX-License-Identifier: Apache-2.0
// Turns tensors into what the device holds: the caching allocator's rounding and fragmentation, and
// the fixed part of context, libraries and communicators (docs/memory.md).
#pragma once

#include "core/quantity.h"

namespace stepcast {

struct Scenario;

// Bytes that the caching allocator reserves for a peak of `allocated` bytes of tensors. A process
// on a processor allocates what it needs.
ByteCount reserved_bytes(const Scenario& scenario, ByteCount allocated);

// This one is told the peaks of buffers and of everything else apart. A flat copy is larger than
// any piece that activations left behind, so the allocator asks the device for it anew and keeps
// both, as long as the device has room; then it gives back what it kept. What FSDP gathers and
// reduces is allocated on streams of its own (_fsdp_param_group.py), and a stream's pool serves no
// other.
ByteCount reserved_bytes(const Scenario& scenario, ByteCount allocated, ByteCount others,
                         ByteCount buffers, ByteCount device_memory);

// Bytes that a pool of CUDA's, which maps memory in pieces, takes from the device for as much.
ByteCount pooled_bytes(ByteCount allocated);

// CUDA context and libraries, NCCL's channel buffers of every communicator of the layout, and the
// buffers of DeepEP or HybridEP; none of them on a processor. A rank `alone` has no communicators.
ByteCount framework_bytes(const Scenario& scenario, bool alone = false);

}  // namespace stepcast
