// SPDX-License-Identifier: Apache-2.0
// A way to exchange parts of a cluster that lie alike: after it the graph is the graph it was, with
// the same kinds, capacities and latencies. So a route between two GPUs, carried over, is the route
// between the GPUs that they are carried to. It exchanges units of a cluster that repeats as wholes
// (nodes under different leaves), or what is inside a unit, in all of them alike (a node's rails).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cluster/repeated_units.h"
#include "cluster/topology.h"

namespace stepcast {

class GraphSymmetry {
 public:
  // `to`: by unit, the one that it is carried to; every unit once. Nothing where the switches and
  // links of the fabric do not lie alike, which is checked link by link.
  static std::optional<GraphSymmetry> of_units(const Topology& graph, const RepeatedUnits& units,
                                               std::vector<std::int32_t> to);
  // `to`: by GPU of a unit.
  static std::optional<GraphSymmetry> inside_units(const Topology& graph,
                                                   const RepeatedUnits& units,
                                                   const std::vector<std::int32_t>& to);

  LinkId operator()(LinkId link) const;

  std::int32_t unit(std::int32_t from) const { return moved(unit_to_, from); }
  std::int32_t device_in_unit(std::int32_t from) const { return moved(device_to_, from); }
  std::int32_t link_in_unit(std::int32_t from) const { return moved(link_to_, from); }
  // By link of the fabric, in the order in which they stand outside the units.
  const std::vector<LinkId>& fabric_links() const { return fabric_to_; }

 private:
  class Builder;

  explicit GraphSymmetry(const RepeatedUnits& units) : units_(units) {}
  static std::int32_t moved(const std::vector<std::int32_t>& to, std::int32_t from) {
    return to.empty() ? from : to[static_cast<std::size_t>(from)];
  }

  RepeatedUnits units_;
  // Empty: each stays where it is.
  std::vector<std::int32_t> unit_to_, device_to_, vertex_to_, link_to_;  // the last three in a unit
  std::vector<LinkId> fabric_to_;
};

}  // namespace stepcast
