// SPDX-License-Identifier: Apache-2.0
// A cluster as a graph: GPUs, NVSwitches, PCIe switches, hosts, NICs, leaf and spine switches,
// joined by directed links with a capacity in bytes/s and a latency. A fat tree's spine layer of one
// pod is one vertex per plane: ECMP in equal fractions makes its switches one trunk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/id.h"
#include "core/quantity.h"
#include "core/result.h"

namespace stepcast {

enum class VertexKind { kGpu, kNvSwitch, kPcieSwitch, kHost, kNic, kLeaf, kSpine, kCore };
enum class LinkKind { kNvlink, kPcie, kHostBus, kNic, kFabric };

struct Vertex {
  VertexKind kind;
  std::int32_t node = -1;   // -1 for switches of the fabric
  std::int32_t index = 0;   // among its kind in the node (or in the fabric)
  std::string name;         // "node3/gpu5", "leaf12"
};

struct Link {
  VertexId from;
  VertexId to;
  LinkKind kind;
  BytesPerSecond capacity;  // one direction, nominal
  Seconds latency;
};

// A share of a path's traffic on one link: 1 for a single path, 1/k for k equal paths.
struct LinkShare {
  LinkId link;
  double fraction;
};

class Topology {
 public:
  VertexId add_vertex(Vertex vertex);
  LinkId add_link(Link link);                  // one direction
  void add_cable(Link link);                   // both directions

  const std::vector<Vertex>& vertices() const { return vertices_; }
  const std::vector<Link>& links() const { return links_; }
  const std::vector<VertexId>& gpus() const { return gpus_; }  // by DeviceId
  const std::vector<LinkId>& out_links(VertexId vertex) const { return out_[vertex.index()]; }

  // The shortest path (fewest hops; equal-cost paths in equal fractions) between two GPUs.
  // `avoid_network` keeps the path inside the node. Empty when there is none.
  std::vector<LinkShare> route(DeviceId from, DeviceId to) const;
  Seconds latency(DeviceId from, DeviceId to) const;  // sum along one such path

  // Unreachable pairs, cycles among tiers that should be a tree, zero capacities, GPUs without
  // links: everything wrong with the graph as input errors (`topology check`).
  Errors check() const;

 private:
  std::vector<Vertex> vertices_;
  std::vector<Link> links_;
  std::vector<VertexId> gpus_;
  std::vector<std::vector<LinkId>> out_;
};

}  // namespace stepcast
