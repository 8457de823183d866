// SPDX-License-Identifier: Apache-2.0
// Most clusters repeat: node after node, or NVLink domain after domain, has the same vertices and
// links in the same order, and only switches of the fabric stand beside them. What is known of one
// such unit holds for all of them.
#pragma once

#include <cstdint>

#include "cluster/topology.h"

namespace stepcast {

// Unit u has the `vertices` vertices from first_vertex + u * vertices on, and likewise its links,
// which include those from its NICs to the fabric. Its devices are u * devices and those after it.
struct RepeatedUnits {
  std::int64_t count = 0;  // 0: the graph does not repeat
  std::int64_t devices = 0, vertices = 0, links = 0;
  std::int64_t first_vertex = 0, first_link = 0;

  bool holds(VertexId vertex) const {
    return vertex.value >= first_vertex && vertex.value < first_vertex + count * vertices;
  }
  bool holds(LinkId link) const {
    return link.value >= first_link && link.value < first_link + count * links;
  }
};

// Finds the units of `devices` GPUs each, and checks them vertex by vertex and link by link. GPUs
// of several kinds make no units, nor do flows that are hashed.
RepeatedUnits find_units(const Topology& graph, std::int64_t devices);

}  // namespace stepcast
