// SPDX-License-Identifier: Apache-2.0
// Does what NCCL's graph search does for a communicator: finds channels and their bandwidth
// (NVIDIA/nccl v2.28.9-1, src/graph/search.cc, topo.h, connect.cc; docs/collectives.md,
// "Channels").
#pragma once

#include "cost/collective_group.h"
#include "cost/nccl_tuner.h"

namespace stepcast {

NcclGraph nccl_graph(const ClusterSpec& cluster, const GroupShape& group);

// The bandwidth that NCCL assumes for a GPU's NVLinks (or PCIe port): data sheet figures less
// protocol overhead.
BytesPerSecond nccl_scale_up_bandwidth(const ClusterSpec& cluster);

// The part of a link that NCCL counts on, for the same reason.
double nccl_wire_part(const ClusterSpec& cluster, LinkKind kind);

// It assumes this for the way to `members` GPUs of a domain that belong to the group: a mesh gives
// it only the links between its members.
BytesPerSecond nccl_group_bandwidth(const ClusterSpec& cluster, const GroupShape& group,
                                    std::int64_t members);

// Channels of one send or receive between GPUs of a communicator of `ranks` ranks in `domains`
// domains (src/enqueue.cc, src/graph/paths.cc). `nics` are those beside the GPU.
std::int64_t nccl_send_channels(const ClusterSpec& cluster, Bytes size, bool network,
                                std::int64_t ranks, std::int64_t domains, std::int64_t nics);

}  // namespace stepcast
