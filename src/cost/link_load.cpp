// SPDX-License-Identifier: Apache-2.0
#include "cost/link_load.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "cost/collective_group.h"
#include "cost/nccl_graph.h"
#include "operation/distinct_destinations.h"

namespace stepcast {
namespace {

// Bytes that each rank hands to the next one of a ring, per byte of payload. A broadcast passes all
// hops but one; which one depends on the root, and training rotates roots.
double ring_bytes(CollectiveKind kind, std::int64_t ranks) {
  const double n = static_cast<double>(ranks);
  return (kind == CollectiveKind::kAllReduce ? 2 : 1) * (n - 1) / n;
}

class Loads {
 public:
  explicit Loads(const Cluster& cluster) : cluster_(cluster) {}

  void send(DeviceId from, DeviceId to, double bytes) {
    if (from == to) return;
    for (const LinkShare& share : cluster_.topology.route(from, to)) {
      loads_.push_back({share.link, share.fraction * bytes});
    }
  }

  // `bytes` of all the members of one domain to those of another, pairing members of like place:
  // their NICs are of one rail, and several GPUs drive several NICs. Every member takes an equal
  // part, also where the domains hold different numbers of them.
  void send(const DomainMembers& from, const DomainMembers& to, double bytes) {
    const std::size_t width = std::lcm(from.size(), to.size());
    for (std::size_t i = 0; i < width; ++i) {
      send(from[i % from.size()], to[i % to.size()], bytes / static_cast<double>(width));
    }
  }

  // Each member hands `bytes` to the next, the last to the first. Where a link joins every two
  // members, the rings of different channels go round in different orders, so that all links carry
  // some (docs/collectives.md, "Links").
  void circulate(std::span<const DeviceId> members, double bytes) {
    if (members.size() < 2) return;
    if (linked_pairwise(members)) return circulate_over_mesh(members, bytes);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const DeviceId next = members[(i + 1) % members.size()];
      if (on_switches(members[i]) && on_switches(next)) {
        switch_traffic(members[i], bytes, 0);  // the route, without looking for it
        switch_traffic(next, 0, bytes);
      } else {
        send(members[i], next, bytes);
      }
    }
  }

  // All NVLinks of the GPU lead to NVSwitches.
  bool on_switches(DeviceId device) const {
    bool any = false;
    for (const LinkId link : cluster_.topology.out_links(vertex_of(device))) {
      if (!is_nvlink(link)) continue;
      const VertexId to = cluster_.topology.links()[link.index()].to;
      if (cluster_.topology.vertices()[to.index()].kind != VertexKind::kNvSwitch) return false;
      any = true;
    }
    return any;
  }

  // An NVLink leads from every member to every other.
  bool linked_pairwise(std::span<const DeviceId> members) const {
    if (on_switches(members.front())) return false;
    for (const DeviceId from : members) {
      std::size_t peers = 0;
      for (const DeviceId to : members) peers += from != to && capacity_of(from, to) > 0;
      if (peers + 1 < members.size()) return false;
    }
    return true;
  }

  // Loads the links to and from the NVSwitches.
  void switch_traffic(DeviceId device, double out, double in) {
    if (out > 0) spread(cluster_.topology.out_links(vertex_of(device)), out);
    if (in > 0) spread(cluster_.topology.in_links(vertex_of(device)), in);
  }

  std::vector<LinkLoad> take() {
    const auto by_link = [](const LinkLoad& a, const LinkLoad& b) { return a.link < b.link; };
    if (!std::ranges::is_sorted(loads_, by_link)) std::ranges::stable_sort(loads_, by_link);
    std::vector<LinkLoad> merged;
    merged.reserve(loads_.size());
    for (const LinkLoad& load : loads_) {
      if (!merged.empty() && merged.back().link == load.link) {
        merged.back().weight += load.weight;
      } else {
        merged.push_back(load);
      }
    }
    return merged;
  }

 private:
  // All NVLinks from one to the other.
  double capacity_of(DeviceId from, DeviceId to) const {
    double sum = 0;
    for (const LinkId link : cluster_.topology.out_links(vertex_of(from))) {
      const Link& own = cluster_.topology.links()[link.index()];
      if (own.kind == LinkKind::kNvlink && own.to == vertex_of(to)) sum += own.capacity.value();
    }
    return sum;
  }

  // A wide cable carries as many rings more as it has links more.
  void circulate_over_mesh(std::span<const DeviceId> members, double bytes) {
    for (const DeviceId from : members) {
      double all = 0;
      for (const DeviceId to : members) all += from == to ? 0 : capacity_of(from, to);
      for (const DeviceId to : members) {
        if (from != to) send(from, to, bytes * capacity_of(from, to) / all);
      }
    }
  }

  void spread(const LinkRange& links, double bytes) {
    double count = 0;
    for (const LinkId link : links) count += is_nvlink(link);
    for (const LinkId link : links) {
      if (is_nvlink(link)) loads_.push_back({link, bytes / count});
    }
  }
  VertexId vertex_of(DeviceId device) const { return cluster_.topology.gpus()[device.index()]; }
  bool is_nvlink(LinkId link) const {
    return cluster_.topology.links()[link.index()].kind == LinkKind::kNvlink;
  }

  const Cluster& cluster_;
  std::vector<LinkLoad> loads_;
};

// Each channel enters a domain at one member, visits the others and leaves; which one differs from
// channel to channel, so that every member leaves out one hop in k.
void add_ring(Loads& loads, const std::vector<DomainMembers>& domains, double bytes) {
  if (domains.size() == 1) return loads.circulate(domains.front(), bytes);
  for (std::size_t d = 0; d < domains.size(); ++d) {
    const double local = static_cast<double>(domains[d].size());
    loads.circulate(domains[d], bytes * (local - 1) / local);
    loads.send(domains[d], domains[(d + 1) % domains.size()], bytes);
  }
}

void add_tree_between(Loads& loads, const std::vector<DomainMembers>& domains) {
  for (const TreeEdge& edge : double_binary_tree(static_cast<std::int64_t>(domains.size()))) {
    const DomainMembers& child = domains[static_cast<std::size_t>(edge.child)];
    const DomainMembers& parent = domains[static_cast<std::size_t>(edge.parent)];
    loads.send(child, parent, 0.5);
    loads.send(parent, child, 0.5);
  }
}

// Inside a domain the tree is a chain: the payload passes each of its k-1 hops up and down.
void add_tree(Loads& loads, const std::vector<DomainMembers>& domains) {
  for (const DomainMembers& domain : domains) {
    const double local = static_cast<double>(domain.size());
    loads.circulate(domain, 2 * (local - 1) / local);
  }
  add_tree_between(loads, domains);
}

// The switches read a rank's part from all members and write results to all of them: in an
// all-reduce the whole buffer goes out to be summed and comes back as sums, and each member moves
// its own n-th of the result once more, from the sum to the multicast.
void add_in_switch(Loads& loads, const DomainMembers& domain, CollectiveKind kind) {
  const double part = 1 / static_cast<double>(domain.size());
  const bool gather = kind == CollectiveKind::kAllGather;
  const bool scatter = kind == CollectiveKind::kReduceScatter;
  for (const DeviceId member : domain) {
    loads.switch_traffic(member,
                         gather    ? part
                         : scatter ? 1
                                   : 1 + part,
                         gather    ? 1
                         : scatter ? part
                                   : 1 + part);
  }
}

// One n-th of the payload to every other rank. Across the network it leaves through the NIC of its
// destination's rail (PXN), so that all members of a domain first trade among themselves.
void add_pairwise(Loads& loads, const std::vector<DomainMembers>& domains, double ranks) {
  for (const DomainMembers& domain : domains) {
    const double local = static_cast<double>(domain.size());
    const double away = (ranks - local) / ranks * (local - 1) / local;
    for (const DeviceId from : domain) {
      if (loads.on_switches(from)) {
        const double bytes = (local - 1) / ranks + away;
        loads.switch_traffic(from, bytes, bytes);
        continue;
      }
      for (const DeviceId to : domain) loads.send(from, to, 1 / ranks);
    }
    for (const DomainMembers& other : domains) {
      if (&other == &domain) continue;
      loads.send(domain, other, local * static_cast<double>(other.size()) / ranks);
    }
  }
}

// Loads links as CollectiveModel::exchange_once moves tokens: one copy of a token to each domain
// that it visits, and inside one to each rank that it visits but where it arrives.
void add_exchange_once(Loads& loads, const std::vector<DomainMembers>& domains, double ranks,
                       double copies) {
  const double count = static_cast<double>(domains.size());
  const double to_domain = distinct_destinations(count, copies) / count / copies;
  for (const DomainMembers& domain : domains) {
    const double local = static_cast<double>(domain.size());
    const double handed_on = distinct_destinations(ranks, copies) * (local - 1) / local / copies;
    for (const DeviceId from : domain) {
      if (loads.on_switches(from)) {
        loads.switch_traffic(from, handed_on, handed_on);
        continue;
      }
      for (const DeviceId to : domain) {
        if (local > 1) loads.send(from, to, handed_on / (local - 1));
      }
    }
    for (const DomainMembers& other : domains) {
      if (&other != &domain) loads.send(domain, other, local * to_domain);
    }
  }
}

// Parallel aggregated trees (PAT): rank r sends to r + d for each power of two d, one part of n to
// the farthest first, then twice as many as before, until all have all.
void add_aggregated_trees(Loads& loads, std::span<const DeviceId> members) {
  const std::size_t n = members.size();
  std::size_t distance = 1;
  while (distance * 2 < n) distance *= 2;
  for (std::size_t held = 1; distance > 0; distance /= 2) {
    const std::size_t parts = std::min(held, n - held);
    for (std::size_t i = 0; i < n; ++i) {
      loads.send(members[i], members[(i + distance) % n],
                 static_cast<double>(parts) / static_cast<double>(n));
    }
    held += parts;
  }
}

// NCCL's numbering of a binary tree whose leaves are the odd nodes (src/graph/trees.cc): the lowest
// set bit of a node is its height, and its parent has the next bit set instead.
std::int64_t parent_in_tree(std::int64_t node, std::int64_t nodes) {
  const std::int64_t lowest = node & -node;
  const std::int64_t parent = (node ^ lowest) | (lowest << 1);
  return parent >= nodes ? node ^ lowest : parent;
}

}  // namespace

std::vector<TreeEdge> double_binary_tree(std::int64_t nodes) {
  std::vector<TreeEdge> edges;
  for (std::int64_t node = 1; node < nodes; ++node) {
    const std::int64_t parent = parent_in_tree(node, nodes);
    edges.push_back({node, parent});
    // The second tree turns leaves into inner nodes: mirrored, or shifted by one.
    if (nodes % 2 == 0) {
      edges.push_back({nodes - 1 - node, nodes - 1 - parent});
    } else {
      edges.push_back({(node + 1) % nodes, (parent + 1) % nodes});
    }
  }
  return edges;
}

CollectiveKind routed_like(Algorithm algorithm, CollectiveKind kind) {
  const bool is_ring = algorithm == Algorithm::kRing;
  return is_ring && kind != CollectiveKind::kAllReduce ? CollectiveKind::kAllGather : kind;
}

std::vector<LinkLoad> routed_bytes(const Cluster& cluster, Algorithm algorithm, CollectiveKind kind,
                                   std::span<const DeviceId> members) {
  Loads loads(cluster);
  const std::int64_t ranks = static_cast<std::int64_t>(members.size());
  if (ranks < 2) return {};
  const std::vector<DomainMembers> domains = by_domain(cluster, members);
  switch (algorithm) {
    case Algorithm::kDirect:
      // Every rank sends the message to the next one.
      for (std::size_t i = 0; i < members.size(); ++i) {
        loads.send(members[i], members[(i + 1) % members.size()], 1);
      }
      break;
    case Algorithm::kRing:
      add_ring(loads, domains, ring_bytes(kind, ranks));
      break;
    case Algorithm::kTree:
      add_tree(loads, domains);
      break;
    case Algorithm::kNvls:
      add_in_switch(loads, domains.front(), kind);
      break;
    case Algorithm::kNvlsTree:
      for (const DomainMembers& domain : domains) add_in_switch(loads, domain, kind);
      add_tree_between(loads, domains);
      break;
    case Algorithm::kPairwise:
      add_pairwise(loads, domains, static_cast<double>(ranks));
      break;
    case Algorithm::kPat:
      add_aggregated_trees(loads, members);
      break;
  }
  return loads.take();
}

std::vector<LinkLoad> routed_bytes_once(const Cluster& cluster, std::int64_t copies,
                                        std::span<const DeviceId> members) {
  Loads loads(cluster);
  if (members.size() < 2) return {};
  add_exchange_once(loads, by_domain(cluster, members), static_cast<double>(members.size()),
                    static_cast<double>(copies));
  return loads.take();
}

std::vector<LinkLoad> routed_bytes_of_send(const Cluster& cluster, DeviceId from, DeviceId to) {
  Loads loads(cluster);
  loads.send(from, to, 1);
  return loads.take();
}

BytesPerSecond rate_at_once(const Topology& topology, BytesPerSecond rate,
                            std::span<const std::vector<LinkLoad>> groups) {
  if (groups.empty()) return rate;
  std::vector<LinkLoad> all = groups.front();  // with what the others add to its links
  for (const std::vector<LinkLoad>& other : groups.subspan(1)) {
    for (const LinkLoad& load : other) {
      const auto shared = std::ranges::lower_bound(all, load.link, {}, &LinkLoad::link);
      if (shared != all.end() && shared->link == load.link) shared->weight += load.weight;
    }
  }
  for (const LinkLoad& load : all) {
    const BytesPerSecond capacity = topology.links()[load.link.index()].capacity;
    if (load.weight > 0) rate = std::min(rate, capacity / load.weight);
  }
  return rate;
}

void charge_protocol(const Cluster& cluster, const Reached& reached, std::vector<LinkLoad>& loads) {
  const double measured = std::min(1.0, reached.efficiency);
  const auto link_of = [&](const LinkLoad& load) -> const Link& {
    return cluster.topology.links()[load.link.index()];
  };
  // Cables between switches carry the packets of the NICs, and as large a part of them is payload.
  double carried = nccl_wire_part(cluster.spec, LinkKind::kNic) * measured;
  for (const LinkLoad& load : loads) {
    const Link& link = link_of(load);
    if (link.kind != LinkKind::kNic) continue;
    const double used = load.weight * reached.rate.value() / link.capacity.value();
    carried = std::max(carried, std::min(used, 1.0));
  }
  const auto is_wan = [&](VertexId end) {
    return cluster.topology.vertices()[end.index()].kind == VertexKind::kWan;
  };
  for (LinkLoad& load : loads) {
    const Link& link = link_of(load);
    // A link between sites is stated by the payload that it carries.
    if (is_wan(link.from) || is_wan(link.to)) continue;
    const double part = nccl_wire_part(cluster.spec, link.kind) * measured;
    const double full = link.capacity.value() / reached.rate.value();
    const double least = link.kind == LinkKind::kFabric ? load.weight / carried : load.weight;
    load.weight = std::max(least, std::min(load.weight / part, full));
  }
}

}  // namespace stepcast
