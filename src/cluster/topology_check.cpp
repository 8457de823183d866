// SPDX-License-Identifier: Apache-2.0
// Finds what can be wrong with a topology that somebody wrote by hand.
#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/connected_components.hpp>
#include <boost/pending/disjoint_sets.hpp>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "cluster/topology.h"

namespace stepcast {
namespace {

using SwitchGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;

class Checker {
 public:
  explicit Checker(const Topology& graph) : graph_(graph) {}

  Errors run() {
    values();
    directions();
    dangling();
    cycles();
    // Reachability reads cables as both ways, so it comes after the directions agree.
    if (errors_.empty()) reachability();
    return std::move(errors_);
  }

 private:
  void fail(ErrorCode code, std::string message, std::string hint = "") {
    errors_.push_back({code, std::move(message), "", "", std::move(hint)});
  }
  std::string name(VertexId vertex) const { return graph_.name(vertex); }
  VertexKind kind(VertexId vertex) const { return graph_.vertices()[vertex.index()].kind; }

  void values() {
    for (std::size_t i = 0; i < graph_.links().size(); ++i) {
      const Link& link = graph_.links()[i];
      if (!(link.capacity.value() > 0) || !std::isfinite(link.capacity.value())) {
        fail(ErrorCode::kBadValue,
             fmt::format("the link {} has the capacity {} B/s", graph_.name(LinkId(i)),
                         link.capacity.value()),
             "a capacity is more than 0");
      }
      if (!(link.latency.value() >= 0)) {
        fail(ErrorCode::kBadValue, fmt::format("the link {} has the latency {} s",
                                               graph_.name(LinkId(i)), link.latency.value()));
      }
    }
  }

  // Each link has exactly one partner of the same kind and capacity the other way.
  void directions() {
    std::map<std::tuple<VertexId, VertexId, LinkKind>, LinkId> seen;
    for (std::size_t i = 0; i < graph_.links().size(); ++i) {
      const Link& link = graph_.links()[i];
      if (link.from == link.to) {
        fail(ErrorCode::kIllegal, fmt::format("{} is linked to itself", name(link.from)));
      }
      if (!seen.emplace(std::tuple{link.from, link.to, link.kind}, LinkId(i)).second) {
        fail(ErrorCode::kIllegal,
             fmt::format("the link {} stands more than once", graph_.name(LinkId(i))),
             "write parallel cables as one with the sum of their capacities");
      }
    }
    for (const auto& [ends, id] : seen) {
      const auto& [from, to, kind] = ends;
      const auto back = seen.find({to, from, kind});
      if (back == seen.end()) {
        fail(ErrorCode::kIllegal, fmt::format("the link {} has no way back", graph_.name(id)),
             "use \"between\" for a cable");
      } else if (from < to && graph_.links()[id.index()].capacity !=
                                  graph_.links()[back->second.index()].capacity) {
        fail(ErrorCode::kIllegal,
             fmt::format("the two directions between {} and {} disagree: {} and {} B/s", name(from),
                         name(to), graph_.links()[id.index()].capacity.value(),
                         graph_.links()[back->second.index()].capacity.value()));
      }
    }
  }

  void dangling() {
    for (std::size_t i = 0; i < graph_.vertices().size(); ++i) {
      const VertexId vertex(i);
      if (graph_.out_links(vertex).empty() && graph_.in_links(vertex).empty() &&
          graph_.vertices().size() > 1) {
        fail(ErrorCode::kIllegal, fmt::format("{} has no link", name(vertex)));
      }
    }
  }

  // PCIe is a tree. Switches of one tier need not be: a torus or a dragonfly joins them in rings.
  void cycles() {
    const std::size_t n = graph_.vertices().size();
    std::vector<std::size_t> rank(n);
    std::vector<std::size_t> parent(n);
    boost::disjoint_sets<std::size_t*, std::size_t*> trees(rank.data(), parent.data());
    for (std::size_t i = 0; i < n; ++i) trees.make_set(i);
    for (std::size_t i = 0; i < graph_.links().size(); ++i) {
      const Link& link = graph_.links()[i];
      if (link.from >= link.to || link.kind != LinkKind::kPcie) continue;
      if (trees.find_set(link.from.index()) == trees.find_set(link.to.index())) {
        fail(ErrorCode::kIllegal,
             fmt::format("the link {} closes a cycle among PCIe links", graph_.name(LinkId(i))),
             "PCIe is a tree");
      }
      trees.link(trees.find_set(link.from.index()), trees.find_set(link.to.index()));
    }
  }

  // If one connected part of switches touches all GPUs, every GPU reaches every other. Only where
  // there is no such part (a mesh of NVLinks) is each pair checked.
  void reachability() {
    const std::size_t n = graph_.vertices().size();
    SwitchGraph switches(n);
    for (const Link& link : graph_.links()) {
      if (kind(link.from) != VertexKind::kGpu && kind(link.to) != VertexKind::kGpu) {
        boost::add_edge(link.from.index(), link.to.index(), switches);
      }
    }
    std::vector<int> part(n);
    boost::connected_components(switches, part.data());

    const std::vector<VertexId>& gpus = graph_.gpus();
    std::map<int, std::size_t> touched;  // part -> GPUs that touch it
    for (const VertexId gpu : gpus) {
      std::vector<int> own;
      for (const LinkId id : graph_.out_links(gpu)) {
        const VertexId to = graph_.links()[id.index()].to;
        if (kind(to) != VertexKind::kGpu) own.push_back(part[to.index()]);
      }
      std::sort(own.begin(), own.end());
      own.erase(std::unique(own.begin(), own.end()), own.end());
      for (const int p : own) ++touched[p];
    }
    for (const auto& [unused, count] : touched) {
      if (count == gpus.size()) return nodes_meet();
    }
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      for (std::size_t j = i + 1; j < gpus.size(); ++j) {
        if (graph_.route(DeviceId(i), DeviceId(j)).empty()) {
          fail(ErrorCode::kIllegal,
               fmt::format("there is no path between {} and {}", name(gpus[i]), name(gpus[j])),
               "a path never passes through another GPU");
          return;  // one pair is enough to find the gap
        }
      }
    }
  }

  // Nodes pass nothing on to others: any two have a network between them, of switches alone.
  void nodes_meet() {
    if (graph_.joins_nodes()) return;
    const std::size_t n = graph_.vertices().size();
    SwitchGraph outside(n);
    const auto node_of = [&](VertexId vertex) { return graph_.vertices()[vertex.index()].node; };
    for (const Link& link : graph_.links()) {
      if (node_of(link.from) < 0 && node_of(link.to) < 0) {
        boost::add_edge(link.from.index(), link.to.index(), outside);
      }
    }
    std::vector<int> part(n);
    boost::connected_components(outside, part.data());
    std::map<std::int32_t, std::set<int>> reached;  // by node
    for (const VertexId gpu : graph_.gpus()) reached[node_of(gpu)];
    for (const Link& link : graph_.links()) {
      if (node_of(link.from) >= 0 && node_of(link.to) < 0) {
        reached[node_of(link.from)].insert(part[link.to.index()]);
      }
    }
    std::map<std::set<int>, std::int32_t> kinds;  // and the first node of each
    for (const auto& [node, parts] : reached) kinds.emplace(parts, node);
    for (auto one = kinds.begin(); one != kinds.end(); ++one) {
      for (auto other = std::next(one); other != kinds.end(); ++other) {
        const auto meets = [&](int p) { return other->first.contains(p); };
        if (std::ranges::any_of(one->first, meets)) continue;
        fail(
            ErrorCode::kIllegal,
            fmt::format("no switches lead from node{} to node{}",
                        std::min(one->second, other->second), std::max(one->second, other->second)),
            "traffic never passes through another node");
        return;  // one pair is enough to find the gap
      }
    }
  }

  const Topology& graph_;
  Errors errors_;
};

}  // namespace

Errors Topology::check() const { return Checker(*this).run(); }

}  // namespace stepcast
