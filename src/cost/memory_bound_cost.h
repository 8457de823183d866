// SPDX-License-Identifier: Apache-2.0
// Memory-bound kernels: traffic over the achieved bandwidth (docs/cost-models.md, "Memory-bound").
#pragma once

#include "cluster/accelerator.h"

namespace stepcast {

struct MemoryBound;
struct MemoryFit;

// Traffic of the kernel, or of the steps that it stands for.
Bytes traffic_of(const MemoryBound& kernel, bool in_steps);

Seconds memory_bound_time(const MemoryFit& fit, const Accelerator& accelerator,
                          const MemoryBound& kernel, bool in_steps);

}  // namespace stepcast
