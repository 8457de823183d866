// SPDX-License-Identifier: Apache-2.0
#include "cluster/host_link.h"

#include <algorithm>
#include <cstddef>

#include "cluster/cluster.h"
#include "cluster/topology.h"

namespace stepcast {
namespace {

// A vertex that the search has come to.
struct Visited {
  VertexId vertex;
  std::size_t parent;
  LinkId link;  // from the parent; invalid at the device
};

bool leads_to_host(LinkKind kind) { return kind == LinkKind::kPcie || kind == LinkKind::kHostBus; }

// The fewest links from the device to a host: breadth first through the PCIe switches above it.
std::vector<LinkId> way_to_host(const Topology& graph, VertexId device) {
  std::vector<Visited> reached{{device, 0, LinkId()}};
  for (std::size_t at = 0; at < reached.size(); ++at) {
    if (graph.vertices()[reached[at].vertex.index()].kind == VertexKind::kHost) {
      std::vector<LinkId> out;
      for (std::size_t i = at; i > 0; i = reached[i].parent) out.push_back(reached[i].link);
      return out;
    }
    for (const LinkId link : graph.out_links(reached[at].vertex)) {
      const VertexId next = graph.links()[link.index()].to;
      const bool seen = std::any_of(reached.begin(), reached.end(),
                                    [&](const Visited& known) { return known.vertex == next; });
      if (seen || !leads_to_host(graph.links()[link.index()].kind)) continue;
      reached.push_back({next, at, link});
    }
  }
  return {};
}

// The other direction of a cable; none where only one direction is laid.
LinkId opposite(const Topology& graph, LinkId link) {
  const Link& there = graph.links()[link.index()];
  for (const LinkId back : graph.out_links(there.to)) {
    const Link& other = graph.links()[back.index()];
    if (other.to == there.from && other.kind == there.kind) return back;
  }
  return {};
}

}  // namespace

HostLink host_link(const Cluster& cluster, DeviceId device, CopyDirection direction) {
  const ClusterSpec& spec = cluster.spec;
  HostLink out{spec.pcie_bandwidth, {}};
  if (spec.accelerator.is_cpu()) {
    out.rate = spec.accelerator.memory_bandwidth / 2;
    return out;
  }
  const Topology& graph = cluster.topology;
  for (LinkId link : way_to_host(graph, graph.gpus()[device.index()])) {
    if (direction == CopyDirection::kFromHost) link = opposite(graph, link);
    if (!link.valid()) continue;
    const BytesPerSecond capacity = graph.links()[link.index()].capacity;
    out.rate = out.links.empty() ? capacity : std::min(out.rate, capacity);
    out.links.push_back(link);
  }
  return out;
}

}  // namespace stepcast
