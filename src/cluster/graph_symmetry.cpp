// SPDX-License-Identifier: Apache-2.0
#include "cluster/graph_symmetry.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

namespace stepcast {
namespace {

constexpr std::int32_t kNotCarried = -1;
constexpr std::int32_t kOutside = -1;  // in place of a place in a unit

std::size_t index_of(std::int64_t place) { return static_cast<std::size_t>(place); }

// All that a link is, with its ends by names of the caller's.
using LinkName = std::tuple<std::int32_t, std::int32_t, LinkKind, double, double>;
LinkName name_of(std::int32_t from, std::int32_t to, const Link& link) {
  return {from, to, link.kind, link.capacity.value(), link.latency.value()};
}

using NamedLink = std::pair<LinkName, std::int32_t>;

// Matches two lists of links by their names, parallel ones in their order. Empty where a name of
// one list is missing in the other. Returns by place in `from` the number of its partner.
std::vector<std::int32_t> matched(std::vector<NamedLink> from, std::vector<NamedLink> to) {
  const auto places = from.size();
  std::vector<std::int32_t> out(places, kNotCarried);
  for (std::size_t i = 0; i < places; ++i) from[i].second = static_cast<std::int32_t>(i);
  std::ranges::sort(from);
  std::ranges::sort(to);
  for (std::size_t i = 0; i < places; ++i) {
    if (from[i].first != to[i].first) return {};
    out[index_of(from[i].second)] = to[i].second;
  }
  return out;
}

}  // namespace

class GraphSymmetry::Builder {
 public:
  Builder(const Topology& graph, const RepeatedUnits& units)
      : graph_(graph), units_(units), out_(units), fabric_(fabric_vertices()) {
    for (std::int64_t l = 0; l < units.links; ++l) {
      const Link& link = link_of(0, l);
      if (place(link.from) == kOutside || place(link.to) == kOutside) to_fabric_.push_back(l);
    }
  }

  std::optional<GraphSymmetry> of_units(std::vector<std::int32_t> to) {
    out_.unit_to_ = std::move(to);
    return find_fabric() ? std::optional(std::move(out_)) : std::nullopt;
  }

  std::optional<GraphSymmetry> inside_units(const std::vector<std::int32_t>& to) {
    out_.device_to_ = to;
    return find_inside() && find_fabric() ? std::optional(std::move(out_)) : std::nullopt;
  }

 private:
  // A map of vertices onto vertices that is found piece by piece.
  class VertexMap {
   public:
    explicit VertexMap(std::size_t count) : to_(count, kNotCarried), from_(count, kNotCarried) {}

    // False where one of them is already carried elsewhere.
    bool set(std::int32_t from, std::int32_t to) {
      if (to_[index_of(from)] == kNotCarried && from_[index_of(to)] == kNotCarried) {
        to_[index_of(from)] = to;
        from_[index_of(to)] = from;
        found_.push_back(from);
        return true;
      }
      return to_[index_of(from)] == to;
    }
    bool is_known(std::int32_t from) const { return to_[index_of(from)] != kNotCarried; }
    bool is_taken(std::int32_t to) const { return from_[index_of(to)] != kNotCarried; }
    std::int32_t operator[](std::int32_t from) const { return to_[index_of(from)]; }
    bool is_whole() const { return found_.size() == to_.size(); }
    const std::vector<std::int32_t>& found() const { return found_; }
    std::vector<std::int32_t> take() { return std::move(to_); }

   private:
    std::vector<std::int32_t> to_, from_;
    std::vector<std::int32_t> found_;  // in this order
  };

  const Link& link_of(std::int64_t unit, std::int64_t place) const {
    return graph_.links()[index_of(units_.first_link + unit * units_.links + place)];
  }
  // In its unit.
  std::int32_t place(VertexId vertex) const {
    if (!units_.holds(vertex)) return kOutside;
    return static_cast<std::int32_t>((vertex.value - units_.first_vertex) % units_.vertices);
  }
  std::size_t fabric_vertices() const {
    return graph_.vertices().size() - index_of(units_.count * units_.vertices);
  }
  // Switches of the fabric are numbered without the units.
  std::int32_t fabric_place(VertexId vertex) const {
    const std::int64_t inside = units_.count * units_.vertices;
    return static_cast<std::int32_t>(vertex.value < units_.first_vertex ? vertex.value
                                                                        : vertex.value - inside);
  }
  VertexId fabric_vertex(std::int32_t place) const {
    const std::int64_t inside = units_.count * units_.vertices;
    return VertexId(
        static_cast<std::int32_t>(place < units_.first_vertex ? place : place + inside));
  }
  template <class Visit>
  void for_each_fabric_link(Visit visit) const {
    const std::int64_t inside = units_.count * units_.links;
    const auto count = static_cast<std::int64_t>(graph_.links().size());
    for (std::int64_t l = 0; l < count; ++l) {
      if (l == units_.first_link) l += inside;
      if (l < count) visit(LinkId(index_of(l)));
    }
  }

  // GPUs lead to what hangs on them: a vertex that a known one leads to is carried to one of the
  // same kind behind the partner of that. Where several come into question the first is taken, and
  // whether all of it holds is checked in the end.
  bool find_inside() {
    VertexMap map(index_of(units_.vertices));
    for (std::size_t i = 0; i < out_.device_to_.size(); ++i) {
      const VertexId from = graph_.gpus()[i], to = graph_.gpus()[index_of(out_.device_to_[i])];
      if (!map.set(place(from), place(to))) return false;
    }
    for (std::size_t i = 0; i < map.found().size(); ++i) {
      const std::int32_t from = map.found()[i];
      carry_neighbours(map, from);
    }
    if (!map.is_whole()) return false;
    out_.vertex_to_ = map.take();
    return carries_nodes() && match_inside();
  }

  void carry_neighbours(VertexMap& map, std::int32_t from) const {
    const VertexId own(index_of(units_.first_vertex + from)),
        partner(index_of(units_.first_vertex + map[from]));
    for (const LinkId out : graph_.out_links(own)) {
      const Link& link = graph_.links()[out.index()];
      if (!units_.holds(link.to) || map.is_known(place(link.to))) continue;
      for (const LinkId other : graph_.out_links(partner)) {
        const Link& like = graph_.links()[other.index()];
        if (!is_alike(link, like) || !units_.holds(like.to) || map.is_taken(place(like.to)))
          continue;
        map.set(place(link.to), place(like.to));
        break;
      }
    }
  }

  bool is_alike(const Link& a, const Link& b) const {
    return a.kind == b.kind && a.capacity == b.capacity && a.latency == b.latency &&
           graph_.vertices()[a.to.index()].kind == graph_.vertices()[b.to.index()].kind;
  }

  // GPUs of one node stay together: prices ask which of them share a node.
  bool carries_nodes() const {
    std::map<std::int32_t, std::int32_t> to;
    for (std::int64_t v = 0; v < units_.vertices; ++v) {
      const Vertex& from = vertex_of(v);
      const Vertex& partner = vertex_of(out_.vertex_to_[index_of(v)]);
      const auto [known, fresh] = to.try_emplace(from.node, partner.node);
      if (known->second != partner.node || from.kind != partner.kind) return false;
    }
    return true;
  }
  const Vertex& vertex_of(std::int64_t place) const {
    return graph_.vertices()[index_of(units_.first_vertex + place)];
  }

  bool match_inside() {
    std::vector<NamedLink> from, to;
    const auto carried = [&](VertexId end) {
      const std::int32_t own = place(end);
      return own == kOutside ? kOutside : out_.vertex_to_[index_of(own)];
    };
    for (std::int64_t l = 0; l < units_.links; ++l) {
      const Link& link = link_of(0, l);
      from.emplace_back(name_of(carried(link.from), carried(link.to), link), 0);
      to.emplace_back(name_of(place(link.from), place(link.to), link),
                      static_cast<std::int32_t>(l));
    }
    out_.link_to_ = matched(std::move(from), std::move(to));
    return !out_.link_to_.empty();
  }

  // Units say which leaf is carried to which, and leaves what lies above them.
  bool find_fabric() {
    for (std::int64_t u = 0; u < units_.count; ++u) {
      const std::int32_t to = out_.unit(static_cast<std::int32_t>(u));
      for (const std::int64_t l : to_fabric_) {
        const Link& link = link_of(u, l);
        const Link& partner = link_of(to, out_.link_in_unit(static_cast<std::int32_t>(l)));
        const bool leaves = !units_.holds(link.to);
        const VertexId own = leaves ? link.to : link.from;
        const VertexId other = leaves ? partner.to : partner.from;
        if (graph_.vertices()[own.index()].kind != graph_.vertices()[other.index()].kind ||
            !fabric_.set(fabric_place(own), fabric_place(other))) {
          return false;
        }
      }
    }
    for (std::size_t i = 0; i < fabric_.found().size(); ++i) {
      const std::int32_t from = fabric_.found()[i];
      carry_switches(from);
    }
    return match_fabric();
  }

  void carry_switches(std::int32_t from) {
    for (const LinkId out : graph_.out_links(fabric_vertex(from))) {
      const Link& link = graph_.links()[out.index()];
      if (units_.holds(link.to) || fabric_.is_known(fabric_place(link.to))) continue;
      for (const LinkId other : graph_.out_links(fabric_vertex(fabric_[from]))) {
        const Link& like = graph_.links()[other.index()];
        if (!is_alike(link, like) || units_.holds(like.to)) continue;
        if (fabric_.is_taken(fabric_place(like.to))) continue;
        fabric_.set(fabric_place(link.to), fabric_place(like.to));
        break;
      }
    }
  }

  bool match_fabric() {
    std::vector<NamedLink> from, to;
    bool is_known = true;
    for_each_fabric_link([&](LinkId id) {
      const Link& link = graph_.links()[id.index()];
      const std::int32_t a = fabric_place(link.from), b = fabric_place(link.to);
      is_known = is_known && fabric_.is_known(a) && fabric_.is_known(b);
      from.emplace_back(name_of(fabric_[a], fabric_[b], link), 0);
      to.emplace_back(name_of(a, b, link), id.value);
    });
    if (!is_known) return false;
    const std::vector<std::int32_t> partners = matched(std::move(from), to);
    for (const std::int32_t partner : partners) out_.fabric_to_.emplace_back(partner);
    return partners.size() == to.size();
  }

  const Topology& graph_;
  const RepeatedUnits& units_;
  GraphSymmetry out_;
  VertexMap fabric_;
  std::vector<std::int64_t> to_fabric_;  // places in a unit of the links to and from the fabric
};

std::optional<GraphSymmetry> GraphSymmetry::of_units(const Topology& graph,
                                                     const RepeatedUnits& units,
                                                     std::vector<std::int32_t> to) {
  return Builder(graph, units).of_units(std::move(to));
}

std::optional<GraphSymmetry> GraphSymmetry::inside_units(const Topology& graph,
                                                         const RepeatedUnits& units,
                                                         const std::vector<std::int32_t>& to) {
  return Builder(graph, units).inside_units(to);
}

LinkId GraphSymmetry::operator()(LinkId link) const {
  const std::int64_t inside = units_.count * units_.links;
  if (!units_.holds(link)) {
    return fabric_to_[index_of(link.value < units_.first_link ? link.value : link.value - inside)];
  }
  const std::int64_t own = link.value - units_.first_link;
  const auto unit_of = static_cast<std::int32_t>(own / units_.links);
  const auto place = static_cast<std::int32_t>(own % units_.links);
  return LinkId(static_cast<std::int32_t>(units_.first_link + unit(unit_of) * units_.links +
                                          link_in_unit(place)));
}

}  // namespace stepcast
