// SPDX-License-Identifier: Apache-2.0
// Optimizers of states that lie in host memory or on the node's disks (docs/offload.md).
#pragma once

#include <optional>

#include "cost/host_memory.h"

namespace stepcast {

struct HostUpdate;
struct Scenario;

// A rank's threads read and write so many bytes a second of host memory, while all ranks of its
// node do the same. `measured`: what a profile has of the machine.
BytesPerSecond host_update_rate(const Scenario& scenario,
                                const std::optional<HostMemory>& measured = {});

// A copy between a device and its host, over a link of this rate. A processor copies within its
// memory.
BytesPerSecond host_copy_rate(const Scenario& scenario, BytesPerSecond link,
                              const std::optional<HostMemory>& measured = {});

// A rank's part of what the disks of its node read or write. The cluster has disks.
BytesPerSecond disk_rate(const Scenario& scenario, bool writes);

// States on disks are read, updated and written one after the other, as DeepSpeed does unless its
// pipeline_read and pipeline_write are set.
Seconds host_update_time(const Scenario& scenario, const HostUpdate& update,
                         const std::optional<HostMemory>& measured = {});

}  // namespace stepcast
