// SPDX-License-Identifier: Apache-2.0
#include "cluster/cluster_part.h"

#include <algorithm>
#include <cstddef>

#include "cluster/cluster.h"
#include "core/assert.h"

namespace stepcast {

Cluster part_of(const Cluster& whole, const std::vector<std::int64_t>& nodes) {
  std::vector<DeviceId> devices;
  for (std::size_t i = 0; i < whole.topology.gpus().size(); ++i) {
    const DeviceId device(i);
    if (std::binary_search(nodes.begin(), nodes.end(), whole.node_of(device)))
      devices.push_back(device);
  }
  STEPCAST_ASSERT(!devices.empty(), "a part of a cluster has GPUs");
  Cluster out{whole.spec, whole.topology.with_devices(devices)};
  out.spec.gpus = static_cast<std::int64_t>(devices.size());
  out.spec.nodes = static_cast<std::int64_t>(nodes.size());
  out.spec.of_nodes = whole.spec.nodes;
  return out;
}

}  // namespace stepcast
