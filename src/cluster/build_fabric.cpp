// SPDX-License-Identifier: Apache-2.0
#include "cluster/build_fabric.h"

#include <algorithm>
#include <cstddef>

namespace stepcast {
namespace {

std::int64_t holders(std::int64_t held, std::int64_t each) { return (held + each - 1) / each; }

}  // namespace

FabricBuilder::FabricBuilder(const ClusterSpec& spec, Topology& graph)
    : spec_(spec), fabric_(spec.fabric), graph_(graph) {
  const std::int64_t places = fabric_.places_of(spec.nodes);
  if (spec.nics_per_node == 0) return;
  if (fabric_.kind != FabricKind::kFatTree) {
    per_plane_ = fabric_.routers(places);
    return;
  }
  rails_ = spec.rail_optimised ? spec.nics_per_node : 1;
  const std::int64_t of_site = spec.sites > 1 ? spec.nodes_per_site() : places;
  groups_ = holders(of_site, spec.nodes_per_leaf_group);
  per_plane_ = spec.sites * groups_ * rails_;
  pods_ = spec.pod_nodes > 0 ? holders(of_site, spec.pod_nodes) : 1;
}

std::int64_t FabricBuilder::switches() const {
  return spec_.sites * fabric_.planes * (per_plane_ + 2 * pods_ + fabric_.uplinks) + 2;
}

VertexId FabricBuilder::add(VertexKind kind, std::int64_t plane, std::int64_t index) {
  const std::int64_t named = fabric_.planes > 1 ? plane : -1;
  return graph_.add_vertex(
      {kind, -1, static_cast<std::int32_t>(index), static_cast<std::int32_t>(named)});
}

void FabricBuilder::add_switches() {
  for (std::int64_t plane = 0; plane < fabric_.planes; ++plane) {
    for (std::int64_t i = 0; i < per_plane_; ++i) {
      switches_.push_back(add(VertexKind::kLeaf, plane, i));
    }
  }
  downlinks_.resize(switches_.size());
}

std::int64_t FabricBuilder::switch_of(std::int64_t node, std::int64_t nic) const {
  const std::int64_t place = fabric_.place_of(node);
  if (fabric_.kind != FabricKind::kFatTree) return place / fabric_.nodes_per_router;
  const std::int64_t rail = spec_.rail_optimised ? nic : 0;
  if (spec_.sites == 1) return place / spec_.nodes_per_leaf_group * rails_ + rail;
  const std::int64_t nodes = spec_.nodes_per_site();
  const std::int64_t group = place / nodes * groups_ + place % nodes / spec_.nodes_per_leaf_group;
  return group * rails_ + rail;
}

void FabricBuilder::join(VertexId nic, std::int64_t node, std::int64_t index) {
  const std::int64_t own = switch_of(node, index);
  const BytesPerSecond port = spec_.nic_bandwidth / static_cast<double>(fabric_.planes);
  for (std::int64_t plane = 0; plane < fabric_.planes; ++plane) {
    graph_.add_cable({nic, at(plane, own), LinkKind::kNic, port, spec_.network_latency / 2});
    downlinks_[static_cast<std::size_t>(plane * per_plane_ + own)] += port;
  }
}

void FabricBuilder::join_switches() {
  for (std::int64_t plane = 0; plane < fabric_.planes; ++plane) {
    if (fabric_.kind == FabricKind::kDragonfly) join_dragonfly(plane);
    if (fabric_.kind == FabricKind::kTorus) join_torus(plane);
    if (fabric_.kind != FabricKind::kFatTree || per_plane_ == 0) continue;
    for (std::int64_t site = 0; site < spec_.sites; ++site) join_leaves(plane, site);
  }
  if (spec_.sites > 1) join_sites();
}

// Each site has one link into the wide area, and half of the way is its own.
void FabricBuilder::join_sites() {
  const VertexId wan = graph_.add_vertex({VertexKind::kWan, -1, 0});
  for (const VertexId top : tops_) {
    graph_.add_cable({top, wan, LinkKind::kFabric, spec_.wan_bandwidth, spec_.wan_latency / 2});
  }
}

// Rails that do not meet have spines of their own.
void FabricBuilder::join_leaves(std::int64_t plane, std::int64_t site) {
  const std::int64_t apart = fabric_.rails_joined ? 1 : rails_;
  const std::int64_t count = groups_ * rails_, first = site * count;
  for (std::int64_t rail = 0; rail < apart; ++rail) {
    std::vector<std::size_t> leaves;
    for (std::int64_t i = first + rail; i < first + count; i += apart) {
      leaves.push_back(static_cast<std::size_t>(i));
    }
    const bool is_one = leaves.size() == 1;
    const VertexId top = is_one ? at(plane, first + rail) : join_spines(plane, site, rail, leaves);
    tops_.push_back(top);
  }
}

// Trunks: a leaf's uplinks as one cable, a pod's spine as one vertex. Uplinks of which flows choose
// lead to a spine each.
VertexId FabricBuilder::join_spines(std::int64_t plane, std::int64_t site, std::int64_t rail,
                                    const std::vector<std::size_t>& leaves) {
  const std::int64_t apart = fabric_.rails_joined ? 1 : rails_;
  // Even shares make one trunk of all uplinks.
  const std::int64_t ways = fabric_.is_hashed() ? fabric_.uplinks : 1;
  const std::int64_t groups_per_pod =
      pods_ > 1 ? spec_.pod_nodes / spec_.nodes_per_leaf_group : groups_;
  std::vector<VertexId> spines;  // pod by pod
  std::vector<BytesPerSecond> uplinks(static_cast<std::size_t>(pods_));
  for (std::int64_t pod = 0; pod < pods_; ++pod) {
    for (std::int64_t way = 0; way < ways; ++way) {
      spines.push_back(
          add(VertexKind::kSpine, plane, ((site * pods_ + pod) * apart + rail) * ways + way));
    }
  }
  const auto spine = [&](std::size_t pod, std::int64_t way) {
    return spines[pod * static_cast<std::size_t>(ways) + static_cast<std::size_t>(way)];
  };
  for (const std::size_t leaf : leaves) {
    const auto index = static_cast<std::int64_t>(leaf);
    const BytesPerSecond down = downlinks_[static_cast<std::size_t>(plane * per_plane_ + index)];
    if (down == BytesPerSecond()) continue;  // a rail of unused GPUs only
    const auto pod = static_cast<std::size_t>((index / rails_ - site * groups_) / groups_per_pod);
    const BytesPerSecond trunk = down / spec_.oversubscription;
    for (std::int64_t way = 0; way < ways; ++way) {
      graph_.add_cable({at(plane, index), spine(pod, way), LinkKind::kFabric,
                        trunk / static_cast<double>(ways), spec_.switch_latency});
    }
    uplinks[pod] += trunk;
  }
  if (pods_ < 2) return spines.front();
  const VertexId core = add(VertexKind::kCore, plane, site * apart + rail);
  for (std::size_t pod = 0; pod < uplinks.size(); ++pod) {
    if (uplinks[pod] == BytesPerSecond()) continue;
    const BytesPerSecond up = uplinks[pod] / spec_.pod_oversubscription;
    for (std::int64_t way = 0; way < ways; ++way) {
      graph_.add_cable({spine(pod, way), core, LinkKind::kFabric, up / static_cast<double>(ways),
                        spec_.switch_latency});
    }
  }
  return core;
}

// All routers of a group are joined, and each two groups. The cables of a group to the others are
// dealt to its routers in the order in which these groups follow it, so that all groups are alike.
void FabricBuilder::join_dragonfly(std::int64_t plane) {
  const std::int64_t routers = fabric_.routers_per_group, links = fabric_.global_links;
  const std::int64_t groups = per_plane_ / std::max<std::int64_t>(routers, 1);
  for (std::int64_t group = 0; group < groups; ++group) {
    for (std::int64_t i = 0; i < routers; ++i) {
      for (std::int64_t j = i + 1; j < routers; ++j) {
        graph_.add_cable({at(plane, group * routers + i), at(plane, group * routers + j),
                          LinkKind::kFabric, fabric_.router_link, spec_.switch_latency});
      }
    }
  }
  for (std::int64_t one = 0; one < groups; ++one) {
    for (std::int64_t other = one + 1; other < groups; ++other) {
      const std::int64_t there = other - one - 1, back = groups - 1 - (other - one);
      for (std::int64_t l = 0; l < std::min(links, routers); ++l) {
        const std::int64_t cables = (links - l + routers - 1) / routers;  // of the same two routers
        graph_.add_cable({at(plane, one * routers + (there * links + l) % routers),
                          at(plane, other * routers + (back * links + l) % routers),
                          LinkKind::kFabric, fabric_.global_link * static_cast<double>(cables),
                          spec_.switch_latency});
      }
    }
  }
}

// The first dimension runs fastest. Two routers of a dimension have one cable between them.
void FabricBuilder::join_torus(std::int64_t plane) {
  for (std::int64_t router = 0; router < per_plane_; ++router) {
    std::int64_t stride = 1;
    for (const std::int64_t size : fabric_.torus) {
      const std::int64_t own = router / stride % size, next = (own + 1) % size;
      const bool is_back = next < own && size == 2;
      if (size > 1 && !is_back) {
        graph_.add_cable({at(plane, router), at(plane, router + (next - own) * stride),
                          LinkKind::kFabric, fabric_.router_link, spec_.switch_latency});
      }
      stride *= size;
    }
  }
}

}  // namespace stepcast
