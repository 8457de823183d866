// SPDX-License-Identifier: Apache-2.0
#include "predict/symmetry.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

#include "layout/scenario.h"
#include "predict/equitable_partition.h"
#include "predict/sibling_links.h"

namespace stepcast {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdULL;
}
std::uint64_t mix(std::uint64_t hash, double value) {
  return mix(hash, std::bit_cast<std::uint64_t>(value));
}
std::uint64_t mix(std::uint64_t hash, const CollectivePrice& price) {
  hash = mix(hash, price.latency.value());
  hash = mix(hash, price.rate_bound.value());
  hash = mix(hash, price.work.value());
  if (price.cpu_share > 0) hash = mix(mix(hash, price.cpu_share), price.core_weight);
  return mix(hash, static_cast<std::uint64_t>(price.channels));
}

enum Colour : std::uint64_t {
  kRankColour = 1,
  kGroupColour,
  kPairColour,
  kLinkColour,
  kSiblingLinkColour,
  kNodeColour
};
constexpr std::uint64_t kLoadLabel = 7, kSiblingLabel = 8, kNodeLabel = 9;

// A distinct load of an orbit of groups or pairs: orbit `index` of Traffic::groups[k] or pairs[k].
struct Activity {
  bool is_pair;
  std::size_t k;
  std::size_t index;
  std::size_t load;
  std::int32_t vertex;
  double count;  // that the orbit stands for
};

// Loads of one orbit on one of its links, as one of its activities sees them.
struct OrbitLoad {
  std::int32_t link;  // the orbit
  double weight;
  double links;  // of the orbit, that the activity loads so
};

class SymmetryFinder {
 public:
  SymmetryFinder(const Scenario& scenario, const RankGrid& grid, const Traffic& traffic,
                 const CollectiveCosts& costs, const ForeignLinks& foreign)
      : foreign_(foreign),
        scenario_(scenario),
        grid_(grid),
        traffic_(traffic),
        costs_(costs),
        orbits_(traffic.orbits) {}

  Symmetry find(bool fold);

 private:
  template <class Visit>
  void for_each_load(Visit visit) const;
  template <class Takes, class Visit>
  void for_each_orbit_load(const std::vector<LinkLoad>& loads, Takes takes, Visit visit) const;
  // So many of the activities that `count` says load one link of the orbit.
  double seen_by_link(const OrbitLoad& load, double count) const {
    return load.links * count / orbits_.links_alike(load.link);
  }
  double capacity_of(std::int32_t links) const {  // of an orbit, of one of them
    const LinkId link = orbits_.lowest_link(links);
    return scenario_.cluster.topology.links()[link.index()].capacity.value();
  }
  // GPUs of several kinds have no orbits but themselves (cluster/repeated_units.h). The groups in
  // which ranks meet inside passes have edges to them, so that classes also agree in whom they
  // meet.
  GpuKind kind_of(std::int32_t orbit) const {
    const Topology& graph = scenario_.cluster.topology;
    return graph.is_uneven() ? graph.kind(DeviceId(orbits_.lowest(orbit).value)) : GpuKind{};
  }
  void find_binding_links();
  void drop_implied_links(const std::vector<bool>& binds);
  void add_vertices();
  void add_edges();
  void add_sibling_links();
  void add_sibling_links(const GroupTraffic& groups, std::int32_t base);
  void add_nodes(const GroupOrbit& groups, std::int32_t vertex);
  void list_nodes();
  std::int32_t lowest_node(std::int64_t node) const;
  double nodes_alike(std::int32_t lowest) const;
  std::vector<std::int32_t> classes(bool fold) const;
  Symmetry describe(const std::vector<std::int32_t>& class_of) const;
  void describe_traffic(const std::vector<std::int32_t>& class_of, Symmetry& out) const;
  void add_loads(const std::vector<std::int32_t>& class_of_link, Symmetry& out) const;
  void edge(std::int32_t a, std::int32_t b, std::uint64_t label, double seen_by_a,
            double seen_by_b) {
    edges_.push_back({a, b, label, seen_by_a, seen_by_b});
  }

  const ForeignLinks& foreign_;
  const Scenario& scenario_;
  const RankGrid& grid_;
  const Traffic& traffic_;
  const CollectiveCosts& costs_;
  const Orbits& orbits_;
  std::vector<std::uint64_t> colour_;
  std::vector<std::int32_t> group_base_, pair_base_;  // first vertex of each kind
  std::vector<std::int32_t> link_vertex_;             // by orbit of links; -1: cannot bind
  std::map<std::int32_t, std::int32_t> node_vertex_;  // of nodes with siblings
  std::map<std::int64_t, std::vector<RankId>> ranks_of_node_;
  std::vector<std::int32_t> binding_;  // orbits of links
  std::vector<LabelledEdge> edges_;
};

// visit(activity, largest rate, loads)
template <class Visit>
void SymmetryFinder::for_each_load(Visit visit) const {
  for (std::size_t k = 0; k < traffic_.groups.size(); ++k) {
    const GroupTraffic& groups = traffic_.groups[k];
    for (std::size_t o = 0; o < groups.orbits.size(); ++o) {
      const GroupOrbit& orbit = groups.orbits[o];
      for (std::size_t d = 0; d < orbit.loads.size(); ++d) {
        double rate = 0;
        for (const Priced& priced : orbit.prices) {
          if (priced.loads != static_cast<std::int32_t>(d)) continue;
          rate = std::max(rate, priced.price.rate_bound.value());
        }
        const Activity activity{false,
                                k,
                                o,
                                d,
                                group_base_[k] + static_cast<std::int32_t>(o),
                                static_cast<double>(orbit.groups)};
        visit(activity, rate, orbit.loads[d]);
      }
    }
  }
  for (std::size_t k = 0; k < traffic_.pairs.size(); ++k) {
    for (std::size_t o = 0; o < traffic_.pairs[k].orbits.size(); ++o) {
      const PairOrbit& pair = traffic_.pairs[k].orbits[o];
      const Activity activity{true,
                              k,
                              o,
                              0,
                              pair_base_[k] + static_cast<std::int32_t>(o),
                              static_cast<double>(pair.pairs)};
      visit(activity, pair.price.rate_bound.value(), pair.loads);
    }
  }
}

// visit(load): those on links that `takes` accepts. Equal loads on links of one orbit are one; they
// come in the order of links and weights.
template <class Takes, class Visit>
void SymmetryFinder::for_each_orbit_load(const std::vector<LinkLoad>& loads, Takes takes,
                                         Visit visit) const {
  std::vector<OrbitLoad> all;
  for (const LinkLoad& load : loads) {
    const OrbitLoad one{orbits_.link_orbit(load.link), load.weight, 1};
    if (!takes(one.link)) continue;
    if (orbits_.symmetries() == 0) {
      visit(one);
    } else {
      all.push_back(one);
    }
  }
  std::ranges::sort(all, [](const OrbitLoad& a, const OrbitLoad& b) {
    return a.link != b.link ? a.link < b.link : a.weight < b.weight;
  });
  for (std::size_t i = 0; i < all.size(); ++i) {
    OrbitLoad sum = all[i];
    while (i + 1 < all.size() && all[i + 1].link == sum.link && all[i + 1].weight == sum.weight) {
      ++sum.links;
      ++i;
    }
    visit(sum);
  }
}

// A link that stays below its capacity when everything that uses it runs at full rate constrains
// nothing and takes no part.
void SymmetryFinder::find_binding_links() {
  const auto count = static_cast<std::size_t>(orbits_.link_orbits());
  std::vector<double> demand(count, 0);  // on all links of an orbit
  for_each_load([&](const Activity& activity, double rate, const std::vector<LinkLoad>& loads) {
    for (const LinkLoad& load : loads) {
      demand[static_cast<std::size_t>(orbits_.link_orbit(load.link))] +=
          rate * load.weight * activity.count;
    }
  });
  std::vector<bool> binds(count, false);
  for (std::size_t l = 0; l < count; ++l) {
    if (demand[l] == 0) continue;
    const auto orbit = static_cast<std::int32_t>(l);
    if (!foreign_.empty()) demand[l] += foreign_.demand[orbits_.lowest_link(orbit).index()];
    binds[l] = demand[l] > capacity_of(orbit) * orbits_.links_alike(orbit) * (1 + 1e-9);
    if (binds[l]) binding_.push_back(orbit);
  }
  drop_implied_links(binds);
  link_vertex_.assign(count, -1);
  for (const std::int32_t link : binding_) {
    link_vertex_[static_cast<std::size_t>(link)] = static_cast<std::int32_t>(colour_.size());
    std::uint64_t colour = mix(kLinkColour, capacity_of(link));
    if (!foreign_.empty()) {
      const std::int32_t theirs = foreign_.classes[orbits_.lowest_link(link).index()];
      colour = mix(colour, static_cast<std::uint64_t>(theirs + 1));
    }
    colour_.push_back(colour);
  }
}

// Links in a row carry the same loads of the same activities (a NIC's PCIe link and its port): the
// narrowest one implies the others. It does for orbits, too, because the activities of one orbit
// have one rate.
void SymmetryFinder::drop_implied_links(const std::vector<bool>& binds) {
  std::vector<std::uint64_t> users(binds.size(), 0);
  for_each_load([&](const Activity& activity, double, const std::vector<LinkLoad>& loads) {
    const std::uint64_t name = mix(mix(0, static_cast<std::uint64_t>(activity.vertex)),
                                   static_cast<std::uint64_t>(activity.load));
    const auto takes = [&](std::int32_t link) { return binds[static_cast<std::size_t>(link)]; };
    for_each_orbit_load(loads, takes, [&](const OrbitLoad& load) {
      std::uint64_t& hash = users[static_cast<std::size_t>(load.link)];
      hash = mix(mix(hash, name), load.weight * seen_by_link(load, activity.count));
    });
  });
  // One that another job uses is implied by none: that job may load one of a row alone.
  for (const std::int32_t link : binding_) {
    const LinkId lowest = orbits_.lowest_link(link);
    if (foreign_.empty() || foreign_.demand[lowest.index()] == 0) continue;
    std::uint64_t& hash = users[static_cast<std::size_t>(link)];
    hash = mix(hash, static_cast<std::uint64_t>(lowest.value) + 1);
  }
  const auto narrower = [&](std::int32_t a, std::int32_t b) {
    const double width_a = capacity_of(a), width_b = capacity_of(b);
    return width_a != width_b ? width_a < width_b : a < b;
  };
  const auto users_of = [&](std::int32_t link) { return users[static_cast<std::size_t>(link)]; };
  std::unordered_map<std::uint64_t, std::int32_t> narrowest;
  narrowest.reserve(binding_.size());
  for (const std::int32_t link : binding_) {
    const auto [known, fresh] = narrowest.try_emplace(users_of(link), link);
    if (!fresh && narrower(link, known->second)) known->second = link;
  }
  std::erase_if(binding_, [&](std::int32_t link) { return narrowest[users_of(link)] != link; });
}

void SymmetryFinder::add_vertices() {
  for (std::int32_t o = 0; o < orbits_.count(); ++o) {
    const std::int32_t stage = grid_.point(orbits_.lowest(o)).pp;
    std::uint64_t colour = mix(kRankColour, static_cast<std::uint64_t>(stage));
    if (const GpuKind kind = kind_of(o); kind != GpuKind{}) {
      colour = mix(mix(colour, static_cast<std::uint64_t>(kind.model)), kind.speed);
    }
    colour_.push_back(colour);
  }
  for (const GroupTraffic& groups : traffic_.groups) {
    group_base_.push_back(static_cast<std::int32_t>(colour_.size()));
    for (const GroupOrbit& orbit : groups.orbits) {
      std::uint64_t colour = mix(kGroupColour, static_cast<std::uint64_t>(groups.group.hash()));
      for (const Priced& priced : orbit.prices) colour = mix(colour, priced.price);
      colour_.push_back(colour);
    }
  }
  for (const PairTraffic& pairs : traffic_.pairs) {
    pair_base_.push_back(static_cast<std::int32_t>(colour_.size()));
    for (const PairOrbit& pair : pairs.orbits) {
      std::uint64_t colour = mix(kPairColour, static_cast<std::uint64_t>(pairs.from_stage));
      if (pairs.copy) colour = mix(colour, 1 + static_cast<std::uint64_t>(*pairs.copy));
      colour_.push_back(mix(mix(colour, static_cast<std::uint64_t>(pairs.to_stage)), pair.price));
    }
  }
}

// Orbits of nodes are known by their lowest.
std::int32_t SymmetryFinder::lowest_node(std::int64_t node) const {
  std::int64_t out = node;
  for (const RankId rank : ranks_of_node_.at(node)) {
    out = std::min(out, scenario_.cluster.node_of(DeviceId(orbits_.lowest(rank).value)));
  }
  return static_cast<std::int32_t>(out);
}

// Nodes of an orbit, from its ranks: each node has as many as the lowest.
double SymmetryFinder::nodes_alike(std::int32_t lowest) const {
  const std::vector<RankId>& own = ranks_of_node_.at(lowest);
  std::set<std::int32_t> orbits;
  std::int64_t ranks = 0;
  for (const RankId rank : own) {
    const std::int32_t orbit = orbits_.of(rank);
    if (orbits.insert(orbit).second) ranks += orbits_.size(orbit);
  }
  return static_cast<double>(ranks) / static_cast<double>(own.size());
}

void SymmetryFinder::list_nodes() {
  for (std::int32_t r = 0; r < grid_.size(); ++r) {
    ranks_of_node_[scenario_.cluster.node_of(DeviceId(r))].emplace_back(r);
  }
}

// The nodes that a group lies on, each once.
void SymmetryFinder::add_nodes(const GroupOrbit& groups, std::int32_t vertex) {
  if (ranks_of_node_.empty()) list_nodes();
  std::set<std::int64_t> nodes;
  std::map<std::int32_t, double> by_orbit;
  for (const RankId rank : groups.members) {
    const std::int64_t node = scenario_.cluster.node_of(DeviceId(rank.value));
    if (nodes.insert(node).second) ++by_orbit[lowest_node(node)];
  }
  for (const auto& [lowest, count] : by_orbit) {
    const auto next = static_cast<std::int32_t>(colour_.size());
    const auto [known, fresh] = node_vertex_.try_emplace(lowest, next);
    if (fresh) colour_.push_back(kNodeColour);
    edge(vertex, known->second, kNodeLabel, count,
         count * static_cast<double>(groups.groups) / nodes_alike(lowest));
  }
}

// A group's siblings are those on its nodes. Each way of its messages shares the links with them
// that are full when all groups send at once.
void SymmetryFinder::add_sibling_links(const GroupTraffic& groups, std::int32_t base) {
  struct Sent {
    std::int32_t group;
    double count;
    Way way;
    BytesPerSecond rate;
    std::vector<LinkLoad> loads;
  };
  std::vector<Sent> sent;
  for (std::size_t o = 0; o < groups.orbits.size(); ++o) {
    const GroupOrbit& orbit = groups.orbits[o];
    if (orbit.members.size() < 2 || has_own_links(orbit.members, scenario_.cluster)) continue;
    const auto vertex = base + static_cast<std::int32_t>(o);
    add_nodes(orbit, vertex);
    const std::vector<DeviceId> devices = devices_of(orbit.members);
    for (const auto& [way, price] : groups.fastest(orbit, groups.messages)) {
      sent.push_back({vertex, static_cast<double>(orbit.groups), way, price.rate_bound,
                      costs_.loads(price, way.kind, devices)});
    }
  }
  std::map<std::pair<Way, std::int32_t>, double> demand;  // on all links of an orbit
  for (const Sent& one : sent) {
    for (const LinkLoad& load : one.loads) {
      demand[{one.way, orbits_.link_orbit(load.link)}] +=
          load.weight * one.rate.value() * one.count;
    }
  }
  std::map<std::pair<Way, std::int32_t>, std::int32_t> vertices;
  for (const Sent& one : sent) {
    const auto is_full = [&](std::int32_t link) {
      const double all = capacity_of(link) * orbits_.links_alike(link);
      return demand.at({one.way, link}) > all * (1 + 1e-9);
    };
    for_each_orbit_load(one.loads, is_full, [&](const OrbitLoad& load) {
      const auto next = static_cast<std::int32_t>(colour_.size());
      const auto [known, fresh] = vertices.try_emplace({one.way, load.link}, next);
      if (fresh) colour_.push_back(mix(kSiblingLinkColour, capacity_of(load.link)));
      edge(one.group, known->second, mix(kSiblingLabel, load.weight), load.links,
           seen_by_link(load, one.count));
    });
  }
}

void SymmetryFinder::add_sibling_links() {
  for (std::size_t k = 0; k < traffic_.groups.size(); ++k) {
    const GroupTraffic& groups = traffic_.groups[k];
    if (groups.has_siblings_in_price) add_sibling_links(groups, group_base_[k]);
  }
}

// A rank is in one group of a kind, and at one end of one pair.
void SymmetryFinder::add_edges() {
  for (std::size_t k = 0; k < traffic_.groups.size(); ++k) {
    const GroupTraffic& groups = traffic_.groups[k];
    for (std::int32_t o = 0; o < orbits_.count(); ++o) {
      const std::int32_t own = groups.of_ranks[static_cast<std::size_t>(o)];
      if (own < 0) continue;
      const auto count = static_cast<double>(groups.orbits[static_cast<std::size_t>(own)].groups);
      edge(o, group_base_[k] + own, 1 + k, 1, static_cast<double>(orbits_.size(o)) / count);
    }
  }
  for (std::size_t k = 0; k < traffic_.pairs.size(); ++k) {
    for (std::size_t p = 0; p < traffic_.pairs[k].orbits.size(); ++p) {
      const PairOrbit& pair = traffic_.pairs[k].orbits[p];
      const std::int32_t vertex = pair_base_[k] + static_cast<std::int32_t>(p);
      edge(orbits_.of(pair.sender), vertex, 1001 + 2 * k, 1, 1);
      edge(orbits_.of(pair.receiver), vertex, 1002 + 2 * k, 1, 1);
    }
  }
  for_each_load([&](const Activity& activity, double, const std::vector<LinkLoad>& loads) {
    const std::uint64_t kind = mix(kLoadLabel, static_cast<std::uint64_t>(activity.load));
    const auto vertex_of = [&](std::int32_t link) {
      return link_vertex_[static_cast<std::size_t>(link)];
    };
    const auto takes = [&](std::int32_t link) { return vertex_of(link) >= 0; };
    for_each_orbit_load(loads, takes, [&](const OrbitLoad& load) {
      edge(activity.vertex, vertex_of(load.link), mix(kind, load.weight), load.links,
           seen_by_link(load, activity.count));
    });
  });
}

std::vector<std::int32_t> SymmetryFinder::classes(bool fold) const {
  std::vector<std::int32_t> class_of(colour_.size());
  if (!fold) {
    std::iota(class_of.begin(), class_of.end(), 0);
    return class_of;
  }
  return equitable_partition(weighted_graph(colour_, edges_));
}

// Dense local numbering of the classes of vertices [base, base + count), in order of appearance.
struct LocalClasses {
  std::vector<std::int32_t> class_of;
  std::vector<std::int32_t> representative;
};
LocalClasses localise(const std::vector<std::int32_t>& class_of, std::int32_t base,
                      std::size_t count) {
  LocalClasses out;
  std::map<std::int32_t, std::int32_t> known;
  out.class_of.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t global = class_of[static_cast<std::size_t>(base) + i];
    const auto [found, fresh] =
        known.try_emplace(global, static_cast<std::int32_t>(out.representative.size()));
    if (fresh) out.representative.push_back(static_cast<std::int32_t>(i));
    out.class_of[i] = found->second;
  }
  return out;
}

Symmetry SymmetryFinder::describe(const std::vector<std::int32_t>& class_of) const {
  Symmetry out;
  const LocalClasses ranks = localise(class_of, 0, static_cast<std::size_t>(orbits_.count()));
  std::vector<std::size_t> sizes(ranks.representative.size(), 0);
  for (std::int32_t o = 0; o < orbits_.count(); ++o) {
    sizes[static_cast<std::size_t>(ranks.class_of[static_cast<std::size_t>(o)])] +=
        static_cast<std::size_t>(orbits_.size(o));
  }
  out.ranks.resize(sizes.size());
  for (std::size_t c = 0; c < sizes.size(); ++c) out.ranks[c].reserve(sizes[c]);
  out.class_of_rank.reserve(static_cast<std::size_t>(grid_.size()));
  for (std::int32_t r = 0; r < grid_.size(); ++r) {
    const std::int32_t own = ranks.class_of[static_cast<std::size_t>(orbits_.of(RankId(r)))];
    out.class_of_rank.push_back(own);
    out.ranks[static_cast<std::size_t>(own)].emplace_back(r);
  }
  describe_traffic(class_of, out);

  const auto link_base = static_cast<std::int32_t>(colour_.size() - binding_.size());
  const LocalClasses links = localise(class_of, link_base, binding_.size());
  std::vector<std::int32_t> class_of_link(link_vertex_.size(), -1);
  for (std::size_t c = 0; c < links.representative.size(); ++c) {
    const std::int32_t link = binding_[static_cast<std::size_t>(links.representative[c])];
    class_of_link[static_cast<std::size_t>(link)] = static_cast<std::int32_t>(c);
    out.link_capacity.push_back(capacity_of(link));
    out.link.push_back(orbits_.lowest_link(link));
  }
  add_loads(class_of_link, out);
  out.class_of_link.assign(link_vertex_.size(), -1);
  for (std::size_t b = 0; b < binding_.size(); ++b) {
    out.class_of_link[static_cast<std::size_t>(binding_[b])] = links.class_of[b];
  }
  return out;
}

void SymmetryFinder::describe_traffic(const std::vector<std::int32_t>& class_of,
                                      Symmetry& out) const {
  for (std::size_t k = 0; k < traffic_.groups.size(); ++k) {
    const std::vector<GroupOrbit>& orbits = traffic_.groups[k].orbits;
    LocalClasses local = localise(class_of, group_base_[k], orbits.size());
    GroupClasses classes{std::move(local.class_of), std::move(local.representative), {}};
    for (const std::int32_t o : classes.representative) {
      classes.loads.emplace_back(orbits[static_cast<std::size_t>(o)].loads.size());
    }
    out.groups.push_back(std::move(classes));
  }
  for (std::size_t k = 0; k < traffic_.pairs.size(); ++k) {
    LocalClasses local = localise(class_of, pair_base_[k], traffic_.pairs[k].orbits.size());
    PairClasses classes{std::move(local.class_of), std::move(local.representative), {}};
    classes.loads.resize(classes.representative.size());
    out.pairs.push_back(std::move(classes));
  }
}

// A representative link sees every group of a class; their loads on it add up. `class_of_link` is
// -1 for all links but the representatives.
void SymmetryFinder::add_loads(const std::vector<std::int32_t>& class_of_link,
                               Symmetry& out) const {
  const auto accumulate = [](std::vector<ClassLoad>& sum, std::int32_t link_class, double weight) {
    for (ClassLoad& load : sum) {
      if (load.link_class != link_class) continue;
      load.weight += weight;
      return;
    }
    sum.push_back({link_class, weight});
  };
  for_each_load([&](const Activity& activity, double, const std::vector<LinkLoad>& loads) {
    const auto class_in = [&](const std::vector<std::int32_t>& class_of) {
      return static_cast<std::size_t>(class_of[activity.index]);
    };
    GroupClasses* group = activity.is_pair ? nullptr : &out.groups[activity.k];
    PairClasses* pair = activity.is_pair ? &out.pairs[activity.k] : nullptr;
    std::vector<ClassLoad>& sum = group != nullptr
                                      ? group->loads[class_in(group->class_of)][activity.load]
                                      : pair->loads[class_in(pair->class_of)];
    for (const LinkLoad& load : loads) {
      const std::int32_t link = orbits_.link_orbit(load.link);
      const std::int32_t link_class = class_of_link[static_cast<std::size_t>(link)];
      if (link_class < 0) continue;
      accumulate(sum, link_class, load.weight * activity.count / orbits_.links_alike(link));
    }
  });
}

Symmetry SymmetryFinder::find(bool fold) {
  add_vertices();
  if (fold) add_sibling_links();
  find_binding_links();
  if (fold) add_edges();
  return describe(classes(fold));
}

}  // namespace

Symmetry find_symmetry(const Scenario& scenario, const RankGrid& grid, const Traffic& traffic,
                       const CollectiveCosts& costs, bool fold, const ForeignLinks& foreign) {
  return SymmetryFinder(scenario, grid, traffic, costs, foreign).find(fold);
}

}  // namespace stepcast
