// SPDX-License-Identifier: Apache-2.0
#include "predict/symmetry.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

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

// A distinct load of a group or pair: group or pair `index` of Traffic::groups[k] or pairs[k].
struct Activity {
  bool is_pair;
  std::size_t k;
  std::size_t index;
  std::size_t load;
  std::int32_t vertex;
};

class SymmetryFinder {
 public:
  SymmetryFinder(const Scenario& scenario, const RankGrid& grid, const Traffic& traffic,
                 const CollectiveCosts& costs)
      : scenario_(scenario), grid_(grid), traffic_(traffic), costs_(costs) {}

  Symmetry find(bool fold);

 private:
  template <class Visit>
  void for_each_load(Visit visit) const;
  void find_binding_links();
  void drop_implied_links(const std::vector<bool>& binds);
  void add_vertices();
  void add_edges();
  void add_sibling_links();
  void add_sibling_links(const GroupTraffic& groups, std::int32_t base);
  std::vector<std::int32_t> classes(bool fold) const;
  Symmetry describe(const std::vector<std::int32_t>& class_of) const;
  void describe_traffic(const std::vector<std::int32_t>& class_of, Symmetry& out) const;
  void add_loads(const std::vector<std::int32_t>& class_of_link, Symmetry& out) const;
  void edge(std::int32_t a, std::int32_t b, std::uint64_t label) {
    edges_.push_back({a, b, label});
  }

  const Scenario& scenario_;
  const RankGrid& grid_;
  const Traffic& traffic_;
  const CollectiveCosts& costs_;
  std::vector<std::uint64_t> colour_;
  std::vector<std::int32_t> group_base_, pair_base_;  // first vertex of each kind
  std::vector<std::int32_t> link_vertex_;             // by LinkId; -1: cannot bind
  std::map<std::int64_t, std::int32_t> node_vertex_;  // of nodes with siblings
  std::vector<LinkId> binding_;
  std::vector<LabelledEdge> edges_;
};

// visit(activity, largest rate, loads)
template <class Visit>
void SymmetryFinder::for_each_load(Visit visit) const {
  for (std::size_t k = 0; k < traffic_.groups.size(); ++k) {
    const GroupTraffic& groups = traffic_.groups[k];
    for (std::size_t g = 0; g < groups.members.size(); ++g) {
      for (std::size_t d = 0; d < groups.loads[g].size(); ++d) {
        double rate = 0;
        for (const Priced& priced : groups.prices[g]) {
          if (priced.loads != static_cast<std::int32_t>(d)) continue;
          rate = std::max(rate, priced.price.rate_bound.value());
        }
        const Activity activity{false, k, g, d, group_base_[k] + static_cast<std::int32_t>(g)};
        visit(activity, rate, groups.loads[g][d]);
      }
    }
  }
  for (std::size_t k = 0; k < traffic_.pairs.size(); ++k) {
    const PairTraffic& pairs = traffic_.pairs[k];
    for (std::size_t p = 0; p < pairs.senders.size(); ++p) {
      const Activity activity{true, k, p, 0, pair_base_[k] + static_cast<std::int32_t>(p)};
      visit(activity, pairs.prices[p].rate_bound.value(), pairs.loads[p]);
    }
  }
}

// A link that stays below its capacity when everything that uses it runs at full rate constrains
// nothing and takes no part.
void SymmetryFinder::find_binding_links() {
  const std::vector<Link>& links = scenario_.cluster.topology.links();
  std::vector<double> demand(links.size(), 0);
  for_each_load([&](const Activity&, double rate, const std::vector<LinkLoad>& loads) {
    for (const LinkLoad& load : loads) demand[load.link.index()] += rate * load.weight;
  });
  std::vector<bool> binds(links.size(), false);
  for (std::size_t l = 0; l < links.size(); ++l) {
    binds[l] = demand[l] > links[l].capacity.value() * (1 + 1e-9);
    if (binds[l]) binding_.emplace_back(l);
  }
  drop_implied_links(binds);
  link_vertex_.assign(links.size(), -1);
  for (const LinkId link : binding_) {
    link_vertex_[link.index()] = static_cast<std::int32_t>(colour_.size());
    colour_.push_back(mix(kLinkColour, links[link.index()].capacity.value()));
  }
}

// Links in a row carry the same loads of the same activities (a NIC's PCIe link and its port): the
// narrowest one implies the others.
void SymmetryFinder::drop_implied_links(const std::vector<bool>& binds) {
  const std::vector<Link>& all = scenario_.cluster.topology.links();
  std::vector<std::uint64_t> users(all.size(), 0);
  for_each_load([&](const Activity& activity, double, const std::vector<LinkLoad>& loads) {
    const std::uint64_t name = mix(mix(0, static_cast<std::uint64_t>(activity.vertex)),
                                   static_cast<std::uint64_t>(activity.load));
    for (const LinkLoad& load : loads) {
      if (!binds[load.link.index()]) continue;
      std::uint64_t& hash = users[load.link.index()];
      hash = mix(mix(hash, name), load.weight);
    }
  });
  const auto narrower = [&](LinkId a, LinkId b) {
    const double width_a = all[a.index()].capacity.value();
    const double width_b = all[b.index()].capacity.value();
    return width_a != width_b ? width_a < width_b : a < b;
  };
  std::unordered_map<std::uint64_t, LinkId> narrowest;
  narrowest.reserve(binding_.size());
  for (const LinkId link : binding_) {
    const auto [known, fresh] = narrowest.try_emplace(users[link.index()], link);
    if (!fresh && narrower(link, known->second)) known->second = link;
  }
  std::erase_if(binding_, [&](LinkId link) { return narrowest[users[link.index()]] != link; });
}

void SymmetryFinder::add_vertices() {
  for (std::int32_t r = 0; r < grid_.size(); ++r) {
    colour_.push_back(mix(kRankColour, static_cast<std::uint64_t>(grid_.point(RankId(r)).pp)));
  }
  for (const GroupTraffic& groups : traffic_.groups) {
    group_base_.push_back(static_cast<std::int32_t>(colour_.size()));
    for (const std::vector<Priced>& prices : groups.prices) {
      std::uint64_t colour = mix(kGroupColour, static_cast<std::uint64_t>(groups.group.hash()));
      for (const Priced& priced : prices) colour = mix(colour, priced.price);
      colour_.push_back(colour);
    }
  }
  for (const PairTraffic& pairs : traffic_.pairs) {
    pair_base_.push_back(static_cast<std::int32_t>(colour_.size()));
    for (const CollectivePrice& price : pairs.prices) {
      std::uint64_t colour = mix(kPairColour, static_cast<std::uint64_t>(pairs.from_stage));
      if (pairs.copy) colour = mix(colour, 1 + static_cast<std::uint64_t>(*pairs.copy));
      colour_.push_back(mix(mix(colour, static_cast<std::uint64_t>(pairs.to_stage)), price));
    }
  }
}

// A group's siblings are those on its nodes. Each way of its messages shares the links with them
// that are full when all groups send at once.
void SymmetryFinder::add_sibling_links(const GroupTraffic& groups, std::int32_t base) {
  struct Sent {
    std::int32_t group;
    Way way;
    BytesPerSecond rate;
    std::vector<LinkLoad> loads;
  };
  std::vector<Sent> sent;
  for (std::size_t g = 0; g < groups.members.size(); ++g) {
    const std::vector<RankId>& members = groups.members[g];
    if (members.size() < 2 || has_own_links(members, scenario_.cluster)) continue;
    const std::vector<DeviceId> devices = devices_of(members);
    std::set<std::int64_t> nodes;
    for (const DeviceId device : devices) nodes.insert(scenario_.cluster.node_of(device));
    for (const std::int64_t node : nodes) {
      const auto next = static_cast<std::int32_t>(colour_.size());
      const auto [known, fresh] = node_vertex_.try_emplace(node, next);
      if (fresh) colour_.push_back(kNodeColour);
      edge(base + static_cast<std::int32_t>(g), known->second, kNodeLabel);
    }
    for (const auto& [way, price] : groups.fastest(g, groups.messages)) {
      sent.push_back({base + static_cast<std::int32_t>(g), way, price.rate_bound,
                      costs_.loads(price, way.kind, devices)});
    }
  }
  std::map<std::pair<Way, LinkId>, double> demand;
  for (const Sent& one : sent) {
    for (const LinkLoad& load : one.loads) {
      demand[{one.way, load.link}] += load.weight * one.rate.value();
    }
  }
  const std::vector<Link>& links = scenario_.cluster.topology.links();
  std::map<std::pair<Way, LinkId>, std::int32_t> vertices;
  for (const Sent& one : sent) {
    for (const LinkLoad& load : one.loads) {
      const double capacity = links[load.link.index()].capacity.value();
      if (demand.at({one.way, load.link}) <= capacity * (1 + 1e-9)) continue;
      const auto next = static_cast<std::int32_t>(colour_.size());
      const auto [known, fresh] = vertices.try_emplace({one.way, load.link}, next);
      if (fresh) colour_.push_back(mix(kSiblingLinkColour, capacity));
      edge(one.group, known->second, mix(kSiblingLabel, load.weight));
    }
  }
}

void SymmetryFinder::add_sibling_links() {
  for (std::size_t k = 0; k < traffic_.groups.size(); ++k) {
    if (traffic_.groups[k].in_blocks) add_sibling_links(traffic_.groups[k], group_base_[k]);
  }
}

void SymmetryFinder::add_edges() {
  for (std::size_t k = 0; k < traffic_.groups.size(); ++k) {
    for (std::size_t g = 0; g < traffic_.groups[k].members.size(); ++g) {
      for (const RankId rank : traffic_.groups[k].members[g]) {
        edge(rank.value, group_base_[k] + static_cast<std::int32_t>(g), 1 + k);
      }
    }
  }
  for (std::size_t k = 0; k < traffic_.pairs.size(); ++k) {
    for (std::size_t p = 0; p < traffic_.pairs[k].senders.size(); ++p) {
      const std::int32_t vertex = pair_base_[k] + static_cast<std::int32_t>(p);
      edge(traffic_.pairs[k].senders[p].value, vertex, 1001 + 2 * k);
      edge(traffic_.pairs[k].receivers[p].value, vertex, 1002 + 2 * k);
    }
  }
  for_each_load([&](const Activity& activity, double, const std::vector<LinkLoad>& loads) {
    const std::uint64_t kind = mix(kLoadLabel, static_cast<std::uint64_t>(activity.load));
    for (const LinkLoad& load : loads) {
      const std::int32_t link = link_vertex_[load.link.index()];
      if (link >= 0) edge(activity.vertex, link, mix(kind, load.weight));
    }
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
  const LocalClasses ranks = localise(class_of, 0, static_cast<std::size_t>(grid_.size()));
  out.class_of_rank = ranks.class_of;
  out.ranks.resize(ranks.representative.size());
  for (std::int32_t r = 0; r < grid_.size(); ++r) {
    out.ranks[static_cast<std::size_t>(out.class_of_rank[static_cast<std::size_t>(r)])]
        .emplace_back(r);
  }
  describe_traffic(class_of, out);

  const auto link_base = static_cast<std::int32_t>(colour_.size() - binding_.size());
  const LocalClasses links = localise(class_of, link_base, binding_.size());
  std::vector<std::int32_t> class_of_link(link_vertex_.size(), -1);
  for (std::size_t c = 0; c < links.representative.size(); ++c) {
    const LinkId link = binding_[static_cast<std::size_t>(links.representative[c])];
    class_of_link[link.index()] = static_cast<std::int32_t>(c);
    out.link_capacity.push_back(scenario_.cluster.topology.links()[link.index()].capacity.value());
  }
  add_loads(class_of_link, out);
  return out;
}

void SymmetryFinder::describe_traffic(const std::vector<std::int32_t>& class_of,
                                      Symmetry& out) const {
  for (std::size_t k = 0; k < traffic_.groups.size(); ++k) {
    LocalClasses local = localise(class_of, group_base_[k], traffic_.groups[k].members.size());
    GroupClasses classes{std::move(local.class_of), std::move(local.representative), {}};
    for (const std::int32_t g : classes.representative) {
      classes.loads.emplace_back(traffic_.groups[k].loads[static_cast<std::size_t>(g)].size());
    }
    out.groups.push_back(std::move(classes));
  }
  for (std::size_t k = 0; k < traffic_.pairs.size(); ++k) {
    LocalClasses local = localise(class_of, pair_base_[k], traffic_.pairs[k].senders.size());
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
      const std::int32_t link_class = class_of_link[load.link.index()];
      if (link_class >= 0) accumulate(sum, link_class, load.weight);
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
                       const CollectiveCosts& costs, bool fold) {
  return SymmetryFinder(scenario, grid, traffic, costs).find(fold);
}

}  // namespace stepcast
