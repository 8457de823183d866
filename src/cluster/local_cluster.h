// SPDX-License-Identifier: Apache-2.0
// This machine as a cluster: ranks are processes on its cores, joined through its memory
// (docs/formats/cluster.md, "This machine").
#pragma once

#include <cstdint>

#include "cluster/this_machine.h"

namespace stepcast {

class ObjectReader;
struct Accelerator;
struct Cluster;
struct ClusterSpec;

inline constexpr std::int64_t kMaxLocalRanks = 64;

// One core of `machine` with its part of the memory among `ranks` processes. It is an estimate from
// facts such as a data sheet states. A calibrated profile replaces all of it except the peak and
// the memory.
Accelerator cpu_accelerator(const MachineFacts& machine, std::int64_t ranks);

// One node of `ranks` processes that share the machine's cores.
Cluster local_cluster(const MachineFacts& machine, std::int64_t ranks);

// Call once the number of ranks is known: gives each rank its part of the memory. Does nothing when
// the accelerator is not this machine's.
void share_memory(ClusterSpec& spec);

// {"base": "local", ...}: "gpus" is the number of ranks (default: a rank per core); takes the keys
// of names and "shared_cores". Errors go to the reader's document.
Cluster read_local_cluster(ObjectReader& reader, const std::string& topologies_folder);

}  // namespace stepcast
