// SPDX-License-Identifier: Apache-2.0
// Shortest paths between two GPUs, all equal-cost ones at once. A breadth-first search from both
// ends meets half way, so a route in a cluster of thousands of nodes looks at the few switches
// above its two GPUs and not at the cluster. Depths and numbers of shortest paths are counted from
// either end (Brandes' sigma); the share of a link is the fraction of the shortest paths that use
// it.
#include <algorithm>
#include <array>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/hashed_ways.h"
#include "cluster/route_table.h"
#include "cluster/topology.h"
#include "core/assert.h"

namespace stepcast {
namespace {

constexpr LinkMask bit(LinkKind kind) { return 1u << static_cast<unsigned>(kind); }

constexpr LinkMask kNvlinkOnly = bit(LinkKind::kNvlink);
constexpr LinkMask kInsideNode = kNvlinkOnly | bit(LinkKind::kPcie) | bit(LinkKind::kHostBus);
constexpr LinkMask kPastHosts =
    kNvlinkOnly | bit(LinkKind::kPcie) | bit(LinkKind::kNic) | bit(LinkKind::kFabric);
constexpr LinkMask kEverything = kInsideNode | kPastHosts;

constexpr std::int32_t kNone = -1;

// One way to reach a vertex: over `link` from the vertex `parent` (an index into reached()).
struct Step {
  LinkId link;
  std::int32_t parent;
  std::int32_t next;  // another way to reach the same vertex
};

struct Reached {
  VertexId vertex;
  std::int32_t depth;
  std::int32_t steps;  // first of its list
  double paths;        // shortest paths from the origin
  double share;        // of the traffic, filled in when the ends have met
};

// A typical route fits without an allocation.
using ReachedList = boost::container::small_vector<Reached, 32>;

// The breadth-first tree of one end. Vertices are found again through a small open-addressed table:
// an array over all vertices of the cluster would cost more to clear than the search itself.
class Tree {
 public:
  Tree(const Topology& graph, VertexId origin, VertexId goal, bool forward)
      : graph_(graph),
        goal_(goal),
        nodes_{node_of(origin), node_of(goal)},
        forward_(forward),
        slots_(kSlots, kNone) {
    insert(origin, 0).paths = 1;
  }

  ReachedList& reached() { return reached_; }
  std::size_t level_begin() const { return level_begin_; }
  std::int64_t work() const { return work_; }  // links that the next expand() looks at

  // One level further; false when there is nothing new.
  bool expand(LinkMask mask) {
    work_ = 0;
    const std::size_t begin = level_begin_;
    const std::size_t end = reached_.size();
    level_begin_ = end;
    for (std::size_t i = begin; i < end; ++i) {
      const VertexId at = reached_[i].vertex;
      for (const LinkId id : forward_ ? graph_.out_links(at) : graph_.in_links(at)) {
        const Link& link = graph_.links()[id.index()];
        const VertexId to = forward_ ? link.to : link.from;
        if ((bit(link.kind) & mask) != 0 && (to == goal_ || is_passable(at, to)))
          arrive(to, static_cast<std::int32_t>(i), id);
      }
    }
    return reached_.size() > end;
  }

  Reached* find(VertexId vertex) {
    const std::int32_t at = slots_[slot_of(vertex)];
    return at == kNone ? nullptr : &reached_[static_cast<std::size_t>(at)];
  }

  // Hands the shares of the meeting vertices back to the origin, link by link.
  void settle(std::vector<LinkShare>& out) {
    for (std::size_t i = reached_.size(); i-- > 0;) {
      const Reached v = reached_[i];
      if (v.share == 0) continue;
      for (std::int32_t s = v.steps; s != kNone; s = steps_[static_cast<std::size_t>(s)].next) {
        const Step& step = steps_[static_cast<std::size_t>(s)];
        Reached& parent = reached_[static_cast<std::size_t>(step.parent)];
        const double share = v.share * parent.paths / v.paths;
        parent.share += share;
        out.push_back({step.link, share});
      }
    }
  }

 private:
  std::int32_t node_of(VertexId vertex) const { return graph_.vertices()[vertex.index()].node; }

  // A way leaves its first node, goes over switches, and enters its last node. Nodes pass nothing
  // on, but where only nodes lead to nodes.
  bool is_passable(VertexId from, VertexId to) const {
    const Vertex& next = graph_.vertices()[to.index()];
    if (next.kind == VertexKind::kGpu) return false;
    const auto [own, last] = nodes_;
    const std::int32_t here = node_of(from);
    if (next.node == here || graph_.joins_nodes()) return true;
    if (own == last) return next.node < 0 || next.node == own;
    return next.node < 0 ? here == own : here < 0 && next.node == last;
  }

  void arrive(VertexId vertex, std::int32_t parent, LinkId link) {
    const std::int32_t depth = reached_[static_cast<std::size_t>(parent)].depth + 1;
    Reached* found = find(vertex);
    if (found == nullptr) found = &insert(vertex, depth);
    if (found->depth != depth) return;  // reached sooner
    found->paths += reached_[static_cast<std::size_t>(parent)].paths;
    steps_.push_back({link, parent, found->steps});
    found->steps = static_cast<std::int32_t>(steps_.size() - 1);
  }

  Reached& insert(VertexId vertex, std::int32_t depth) {
    if (2 * (reached_.size() + 1) > slots_.size()) grow();
    slots_[slot_of(vertex)] = static_cast<std::int32_t>(reached_.size());
    reached_.push_back({vertex, depth, kNone, 0, 0});
    work_ += graph_.out_degree(vertex);
    return reached_.back();
  }

  // The vertex's slot, or the free one where it belongs.
  std::size_t slot_of(VertexId vertex) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = (vertex.index() * 0x9E3779B97F4A7C15u >> 32) & mask;
    while (slots_[slot] != kNone &&
           reached_[static_cast<std::size_t>(slots_[slot])].vertex != vertex) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  void grow() {
    slots_.assign(4 * slots_.size(), kNone);
    for (std::size_t i = 0; i < reached_.size(); ++i) {
      slots_[slot_of(reached_[i].vertex)] = static_cast<std::int32_t>(i);
    }
  }

  static constexpr std::size_t kSlots = 64;  // enough for a route inside one leaf group

  const Topology& graph_;
  VertexId goal_;
  std::array<std::int32_t, 2> nodes_;  // of both ends
  bool forward_;
  std::size_t level_begin_ = 0;
  std::int64_t work_ = 0;
  ReachedList reached_;  // in order of depth
  boost::container::small_vector<Step, kSlots / 2> steps_;
  boost::container::small_vector<std::int32_t, kSlots> slots_;
};

}  // namespace

std::vector<LinkShare> shortest_paths(const Topology& graph, VertexId from, VertexId to,
                                      LinkMask mask) {
  Tree near(graph, from, to, true);
  Tree far(graph, to, from, false);
  for (;;) {
    const bool from_near = near.work() <= far.work();
    Tree& growing = from_near ? near : far;
    Tree& other = from_near ? far : near;
    if (!growing.expand(mask)) return {};

    // Every vertex of this level that the other end knows lies on shortest paths, and each shortest
    // path has exactly one of them.
    double paths = 0;
    ReachedList& reached = growing.reached();
    for (std::size_t i = growing.level_begin(); i < reached.size(); ++i) {
      if (const Reached* met = other.find(reached[i].vertex))
        paths += reached[i].paths * met->paths;
    }
    if (paths == 0) continue;
    for (std::size_t i = growing.level_begin(); i < reached.size(); ++i) {
      Reached* met = other.find(reached[i].vertex);
      if (met == nullptr) continue;
      reached[i].share = met->share = reached[i].paths * met->paths / paths;
    }
    std::vector<LinkShare> shares;
    near.settle(shares);
    far.settle(shares);
    return shares;
  }
}

namespace {

// Its own NICs lead to a switch.
bool reaches_switches(const Topology& graph, VertexId gpu) {
  const std::int32_t node = graph.vertices()[gpu.index()].node;
  std::vector<VertexId> reached{gpu};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const LinkId id : graph.out_links(reached[i])) {
      const Link& link = graph.links()[id.index()];
      const Vertex& to = graph.vertices()[link.to.index()];
      if (link.kind == LinkKind::kNic && to.node < 0) return true;
      const bool leads_on = link.kind == LinkKind::kPcie && to.node == node &&
                            to.kind != VertexKind::kGpu && to.kind != VertexKind::kHost;
      if (leads_on && std::ranges::find(reached, link.to) == reached.end()) {
        reached.push_back(link.to);
      }
    }
  }
  return false;
}

// GPUs of its node that NVLink joins it with, by a link or over switches.
std::vector<VertexId> linked_by_nvlink(const Topology& graph, VertexId gpu) {
  std::vector<VertexId> out;
  const auto look = [&](VertexId at, const auto& next) -> void {
    for (const LinkId id : graph.out_links(at)) {
      const Link& link = graph.links()[id.index()];
      const Vertex& to = graph.vertices()[link.to.index()];
      if (link.kind != LinkKind::kNvlink || link.to == gpu) continue;
      if (to.kind == VertexKind::kNvSwitch && at == gpu) next(link.to, next);
      const bool is_new = std::ranges::find(out, link.to) == out.end();
      if (to.kind == VertexKind::kGpu && is_new && to.node == graph.vertices()[gpu.index()].node) {
        out.push_back(link.to);
      }
    }
  };
  look(gpu, look);
  return out;
}

}  // namespace

// Over the GPUs of the sender's node from which the way is shortest, in equal fractions.
std::vector<LinkShare> Topology::relayed(VertexId from, VertexId to) const {
  if (!reaches_switches(*this, from)) return {};
  std::size_t shortest = 0;
  std::vector<std::vector<LinkShare>> ways;
  for (const VertexId peer : linked_by_nvlink(*this, from)) {
    std::vector<LinkShare> way = shortest_paths(*this, from, peer, kNvlinkOnly);
    if (way.empty()) continue;
    const std::vector<LinkShare> on = shortest_paths(*this, peer, to, kPastHosts);
    if (on.empty()) continue;
    way.insert(way.end(), on.begin(), on.end());
    double hops = 0;
    for (const LinkShare& share : way) hops += share.fraction;
    const auto length = static_cast<std::size_t>(hops + 0.5);
    if (!ways.empty() && length > shortest) continue;
    if (length < shortest) ways.clear();
    shortest = length;
    ways.push_back(std::move(way));
  }
  std::map<LinkId, double> fractions;
  for (const auto& way : ways) {
    for (const LinkShare& share : way) {
      fractions[share.link] += share.fraction / static_cast<double>(ways.size());
    }
  }
  std::vector<LinkShare> out;
  for (const auto& [link, fraction] : fractions) out.push_back({link, fraction});
  return out;
}

std::vector<LinkShare> Topology::route(DeviceId from, DeviceId to) const {
  return route(from, to, false);
}

// In the order of a search, in which these sums were always made.
Seconds Topology::latency(DeviceId from, DeviceId to) const {
  Seconds sum;
  for (const LinkShare& share : route(from, to, true)) {
    sum += links_[share.link.index()].latency * share.fraction;
  }
  return sum;
}

std::vector<LinkShare> Topology::route(DeviceId from, DeviceId to, bool search) const {
  std::vector<LinkShare> even = even_route(from, to, search);
  if (!is_hashed() || even.empty()) return even;
  return hashed_ways(*this, even, gpus_[from.index()], gpus_[to.index()]);
}

std::vector<LinkShare> Topology::even_route(DeviceId from, DeviceId to, bool search) const {
  STEPCAST_ASSERT(from.valid() && from.index() < gpus_.size(), "unknown device");
  STEPCAST_ASSERT(to.valid() && to.index() < gpus_.size(), "unknown device");
  if (from == to) return {};
  const VertexId a = gpus_[from.index()];
  const VertexId b = gpus_[to.index()];
  const std::int32_t node_a = vertices_[a.index()].node;
  const std::int32_t node_b = vertices_[b.index()].node;
  const bool same_node = node_a == node_b;
  const bool in_parts = !search && !same_node && !joins_nodes_ && node_a >= 0 && node_b >= 0;
  for (const LinkMask mask : {kNvlinkOnly, kInsideNode, kPastHosts, kEverything}) {
    if (mask == kInsideNode && !same_node) continue;
    std::optional<std::vector<LinkShare>> shares;
    if (in_parts) shares = routes_->only_path(*this, from, to, mask);
    if (!shares) shares = shortest_paths(*this, a, b, mask);
    if (shares->empty() && mask == kPastHosts && !same_node) shares = relayed(a, b);
    if (!shares->empty()) return std::move(*shares);
  }
  return {};
}

}  // namespace stepcast
