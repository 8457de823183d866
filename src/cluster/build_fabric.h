// SPDX-License-Identifier: Apache-2.0
// The switches of a regular graph: leaves under spines, or routers that are joined as a dragonfly
// or a torus, once for each plane.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/topology.h"

namespace stepcast {

class FabricBuilder {
 public:
  // `graph` has to outlive it. Switches stand before the nodes, and links between switches after.
  FabricBuilder(const ClusterSpec& spec, Topology& graph);

  std::int64_t switches() const;  // about as many, for a reservation
  void add_switches();
  void join(VertexId nic, std::int64_t node, std::int64_t index);
  void join_switches();

 private:
  std::int64_t switch_of(std::int64_t node, std::int64_t nic) const;  // in its plane
  void join_leaves(std::int64_t plane, std::int64_t site);
  // Gives what stands above all of these leaves.
  VertexId join_spines(std::int64_t plane, std::int64_t site, std::int64_t rail,
                       const std::vector<std::size_t>& leaves);
  void join_sites();
  void join_dragonfly(std::int64_t plane);
  void join_torus(std::int64_t plane);
  VertexId add(VertexKind kind, std::int64_t plane, std::int64_t index);
  VertexId at(std::int64_t plane, std::int64_t index) const {
    return switches_[static_cast<std::size_t>(plane * per_plane_ + index)];
  }

  const ClusterSpec& spec_;
  const Fabric& fabric_;
  Topology& graph_;
  std::int64_t rails_ = 1;
  std::int64_t per_plane_ = 0;      // leaves or routers
  std::int64_t groups_ = 0;         // of leaves, in a site
  std::int64_t pods_ = 1;           // of a site
  std::vector<VertexId> tops_;      // by site: the switch that all its traffic can reach
  std::vector<VertexId> switches_;  // leaves or routers, plane by plane
  std::vector<BytesPerSecond> downlinks_;
};

}  // namespace stepcast
