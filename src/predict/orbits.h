// SPDX-License-Identifier: Apache-2.0
// Ranks that the cluster and the layout together carry into each other: exchanging them leaves the
// graph, the stages and every process group as they were. Links, groups and pairs of ranks have
// such orbits, too. Routes, loads and prices of one stand for all of its orbit, so that they are
// computed once (docs/design/006-folding-by-equitable-partition.md).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cluster/graph_symmetry.h"
#include "layout/rank_grid.h"

namespace stepcast {

struct Cluster;

class Orbits {
 public:
  // Every rank and every link by itself.
  Orbits(std::int64_t ranks, std::size_t links);
  // `symmetries` exchange either units or what is inside them, and commute.
  Orbits(const RepeatedUnits& units, std::size_t links,
         std::vector<std::shared_ptr<const GraphSymmetry>> symmetries);

  // Orbits of ranks, in the order of their lowest ranks.
  std::int32_t count() const { return static_cast<std::int32_t>(rank_.size()); }
  std::int32_t of(RankId rank) const {
    const auto at = static_cast<std::size_t>(rank.value);
    const auto devices = static_cast<std::size_t>(units_.devices);
    return unit_orbit_[at / devices] * device_count_ + device_orbit_[at % devices];
  }
  RankId lowest(std::int32_t orbit) const { return rank_[static_cast<std::size_t>(orbit)]; }
  RankId lowest(RankId rank) const { return lowest(of(rank)); }
  std::int64_t size(std::int32_t orbit) const { return size_[static_cast<std::size_t>(orbit)]; }

  // Orbits of links are numbered, too.
  std::int32_t link_orbits() const { return link_orbits_; }
  std::int32_t link_orbit(LinkId link) const;
  LinkId lowest_link(std::int32_t orbit) const;
  double links_alike(std::int32_t orbit) const;  // links of the orbit

  // Each symmetry carries a rank to another of its orbit.
  std::size_t symmetries() const { return symmetries_.size(); }
  RankId carried(std::size_t symmetry, RankId rank) const;
  LinkId carried(std::size_t symmetry, LinkId link) const { return (*symmetries_[symmetry])(link); }
  Orbits without(std::size_t symmetry) const;

 private:
  void number_ranks(const std::vector<std::int32_t>& lowest_unit,
                    const std::vector<std::int32_t>& lowest_device);
  void number_links(const std::vector<std::int32_t>& lowest_unit);
  std::size_t fabric_place(LinkId link) const;

  RepeatedUnits units_;
  std::size_t links_ = 0;                                         // of the graph
  std::vector<std::shared_ptr<const GraphSymmetry>> symmetries_;  // none: each link by itself
  std::int32_t device_count_ = 1;                                 // orbits of a unit's devices
  std::vector<std::int32_t> unit_orbit_, device_orbit_;           // by unit, by device of a unit
  std::vector<RankId> rank_;                                      // by orbit
  std::vector<std::int64_t> size_;                                // by orbit
  std::int32_t link_orbits_ = 0, inside_ = 0,
               fabric_ = 0;  // all; of a unit's links; first of fabric
  std::vector<std::int32_t> inside_orbit_, fabric_orbit_;  // by link of a unit, of the fabric
  std::vector<LinkId> lowest_link_;                        // by orbit
  std::vector<double> links_alike_;                        // by orbit
};

// Finds what may be exchanged by trying: every dense axis of the rank grid is turned by the fewest
// places that leave the graph and the groups of `groups` as they were.
Orbits find_orbits(const Cluster& cluster, const RankGrid& grid, const RepeatedUnits& units,
                   std::span<const AxisGroup> groups);

}  // namespace stepcast
