// SPDX-License-Identifier: Apache-2.0
// The way between a device and the memory of its host: PCIe, or a coherent link (NVLink-C2C), which
// cluster files give under "pcie" too.
#pragma once

#include <vector>

#include "core/id.h"
#include "core/quantity.h"

namespace stepcast {

struct Cluster;

enum class CopyDirection { kToHost, kFromHost };

struct HostLink {
  BytesPerSecond rate;        // of one copy alone
  std::vector<LinkId> links;  // that it crosses; empty where the graph has no host
};

// Without a way in the graph the rate is the cluster's PCIe bandwidth. A processor copies within
// its own memory, which it reads and writes.
HostLink host_link(const Cluster& cluster, DeviceId device, CopyDirection direction);

}  // namespace stepcast
