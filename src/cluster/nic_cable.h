// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "cluster/topology.h"

namespace stepcast {

// A NIC whose cable has failed carries nothing, and counts for nothing.
inline bool is_nic_with_cable(const Topology& topology, VertexId vertex) {
  if (topology.vertices()[vertex.index()].kind != VertexKind::kNic) return false;
  const LinkRange out = topology.out_links(vertex);
  return std::any_of(out.begin(), out.end(), [&](LinkId id) {
    const Link& link = topology.links()[id.index()];
    return link.kind == LinkKind::kNic && link.capacity.value() > 0;
  });
}

}  // namespace stepcast
