// SPDX-License-Identifier: Apache-2.0
#include "cluster/repeated_units.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stepcast {
namespace {

constexpr std::int64_t kNoPlace = -1;  // of a switch of the fabric

class UnitFinder {
 public:
  UnitFinder(const Topology& graph, std::int64_t devices) : graph_(graph) {
    units_.devices = devices;
    units_.count = static_cast<std::int64_t>(graph.gpus().size()) / devices;
  }

  RepeatedUnits find() {
    if (units_.count * units_.devices != static_cast<std::int64_t>(graph_.gpus().size())) return {};
    return find_extents() && vertices_repeat() && links_repeat() && rest_is_fabric()
               ? units_
               : RepeatedUnits{};
  }

 private:
  bool touches(const Link& link, std::int64_t begin, std::int64_t end) const {
    const auto inside = [&](VertexId v) { return v.value >= begin && v.value < end; };
    return inside(link.from) || inside(link.to);
  }

  // A unit begins with its first GPU, and its links follow those of the unit before it.
  bool find_extents() {
    const std::vector<VertexId>& gpus = graph_.gpus();
    const auto all = static_cast<std::int64_t>(graph_.vertices().size());
    const std::int64_t begin = units_.first_vertex = gpus.front().value;
    const bool is_single = units_.count == 1;
    const std::int64_t next =
        is_single ? all : gpus[static_cast<std::size_t>(units_.devices)].value;
    units_.vertices = next - begin;
    if (units_.vertices <= 0 || begin + units_.count * units_.vertices > all) return false;
    const std::vector<Link>& links = graph_.links();
    const auto count = static_cast<std::int64_t>(links.size());
    const auto first_of = [&](std::int64_t from, std::int64_t low, std::int64_t high) {
      while (from < count && !touches(links[static_cast<std::size_t>(from)], low, high)) ++from;
      return from;
    };
    units_.first_link = first_of(0, begin, next);
    const std::int64_t after =
        is_single ? count : first_of(units_.first_link, next, next + units_.vertices);
    units_.links = after - units_.first_link;
    return units_.links > 0 && units_.first_link + units_.count * units_.links <= count;
  }

  // Kinds, and which vertices stand in one node: routes and prices ask for both.
  bool vertices_repeat() const {
    const std::vector<Vertex>& all = graph_.vertices();
    const auto begin = all.begin() + units_.first_vertex;
    for (std::int64_t u = 1; u < units_.count; ++u) {
      const auto own = begin + u * units_.vertices;
      const std::int32_t nodes = own->node - begin->node;
      for (std::int64_t v = 0; v < units_.vertices; ++v) {
        const Vertex &a = begin[v], &b = own[v];
        if (a.kind != b.kind || b.node != (a.node < 0 ? a.node : a.node + nodes)) return false;
      }
    }
    for (std::size_t i = 0; i < graph_.gpus().size(); ++i) {
      const auto [u, place] = std::div(static_cast<std::int64_t>(i), units_.devices);
      const VertexId first = graph_.gpus()[static_cast<std::size_t>(place)];
      if (graph_.gpus()[i].value != first.value + u * units_.vertices) return false;
    }
    return true;
  }

  // Returns the place in the unit of an end of a link: kNoPlace for a switch of the fabric, and
  // `vertices`, which is no place either, for a vertex of another unit.
  std::int64_t place(VertexId vertex, std::int64_t unit) const {
    if (!units_.holds(vertex)) return kNoPlace;
    const std::int64_t own = vertex.value - units_.first_vertex - unit * units_.vertices;
    return own >= 0 && own < units_.vertices ? own : units_.vertices;
  }

  // The first unit's links stay inside it or lead to the fabric, and the others are like them.
  bool links_repeat() const {
    const auto begin = graph_.links().begin() + units_.first_link;
    for (std::int64_t l = 0; l < units_.links; ++l) {
      const std::int64_t from = place(begin[l].from, 0), to = place(begin[l].to, 0);
      if (std::max(from, to) == units_.vertices || std::max(from, to) == kNoPlace) return false;
      const auto is_carried = [&](VertexId first, VertexId other, std::int64_t unit) {
        return units_.holds(first) ? other.value == first.value + unit * units_.vertices
                                   : !units_.holds(other);
      };
      for (std::int64_t u = 1; u < units_.count; ++u) {
        const Link &a = begin[l], &b = begin[l + u * units_.links];
        if (!is_carried(a.from, b.from, u) || !is_carried(a.to, b.to, u)) return false;
        if (a.kind != b.kind || a.capacity != b.capacity || a.latency != b.latency) return false;
      }
    }
    return true;
  }

  bool rest_is_fabric() const {
    const std::int64_t after = units_.first_link + units_.count * units_.links;
    const auto joins_switches = [&](const Link& link) {
      return !units_.holds(link.from) && !units_.holds(link.to);
    };
    const auto begin = graph_.links().begin();
    return std::all_of(begin, begin + units_.first_link, joins_switches) &&
           std::all_of(begin + after, graph_.links().end(), joins_switches);
  }

  const Topology& graph_;
  RepeatedUnits units_;
};

}  // namespace

RepeatedUnits find_units(const Topology& graph, std::int64_t devices) {
  if (devices < 1 || graph.gpus().empty() || graph.is_uneven() || graph.is_hashed()) return {};
  return UnitFinder(graph, devices).find();
}

}  // namespace stepcast
