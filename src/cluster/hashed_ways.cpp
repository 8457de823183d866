// SPDX-License-Identifier: Apache-2.0
#include "cluster/hashed_ways.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include "core/seeded_random.h"

namespace stepcast {
namespace {

std::uint64_t mixed(std::uint64_t key, std::uint64_t part) {
  return SeededRandom(key, part).bits();
}

// Vertices are numbered anew where others have failed; these stay.
std::uint64_t identity(const Topology& graph, VertexId vertex) {
  const Vertex& v = graph.vertices()[vertex.index()];
  std::uint64_t out = static_cast<std::uint64_t>(v.kind);
  for (const std::int32_t part : {v.node, v.index, v.plane}) {
    out = mixed(out, static_cast<std::uint64_t>(part));
  }
  return out;
}

class FlowWalk {
 public:
  FlowWalk(const Topology& graph, const std::vector<LinkShare>& even, VertexId goal)
      : graph_(graph), goal_(goal) {
    for (const LinkShare& share : even)
      next_[graph.links()[share.link.index()].from].push_back(share);
    for (auto& [vertex, links] : next_) std::ranges::sort(links, {}, &LinkShare::link);
  }

  void walk(VertexId at, double part, std::uint64_t key) {
    if (at == goal_) return;
    const std::vector<LinkShare>& links = next_[at];
    if (links.size() > 1 && is_choice(at, links)) return step(chosen(at, links, key), part, key);
    double all = 0;
    for (const LinkShare& share : links) all += share.fraction;
    for (const LinkShare& share : links) step(share.link, part * share.fraction / all, key);
  }

  std::vector<LinkShare> take() const {
    std::vector<LinkShare> out;
    for (const auto& [link, part] : carried_) out.push_back({link, part});
    return out;
  }

 private:
  bool is_switch(VertexId vertex) const {
    const Vertex& v = graph_.vertices()[vertex.index()];
    return v.node < 0 && v.kind != VertexKind::kNvSwitch;
  }
  bool is_choice(VertexId at, const std::vector<LinkShare>& links) const {
    return is_switch(at) && std::ranges::all_of(links, [&](const LinkShare& share) {
             return is_switch(graph_.links()[share.link.index()].to);
           });
  }

  // Each way draws a number, and the largest one wins: a cable that fails moves its own flows
  // alone.
  LinkId chosen(VertexId at, const std::vector<LinkShare>& links, std::uint64_t key) const {
    key = mixed(key, identity(graph_, at));
    const auto drawn = [&](const LinkShare& share) {
      return mixed(key, identity(graph_, graph_.links()[share.link.index()].to));
    };
    return std::ranges::max_element(links, {}, drawn)->link;
  }

  void step(LinkId id, double part, std::uint64_t key) {
    const VertexId to = graph_.links()[id.index()].to;
    carried_[id] += part;
    const bool is_nic = graph_.vertices()[to.index()].kind == VertexKind::kNic;
    walk(to, part, is_nic ? mixed(key, identity(graph_, to)) : key);
  }

  const Topology& graph_;
  VertexId goal_;
  std::map<VertexId, std::vector<LinkShare>> next_;
  std::map<LinkId, double> carried_;
};

}  // namespace

std::vector<LinkShare> hashed_ways(const Topology& graph, const std::vector<LinkShare>& even,
                                   VertexId from, VertexId to) {
  const bool is_only =
      std::ranges::all_of(even, [](const LinkShare& s) { return s.fraction == 1; });
  if (is_only) return even;
  FlowWalk walk(graph, even, to);
  const HashedFlows& flows = graph.flows();
  for (std::int64_t flow = 0; flow < flows.count; ++flow) {
    std::uint64_t key = static_cast<std::uint64_t>(flows.seed);
    for (const std::uint64_t part :
         {identity(graph, from), identity(graph, to), static_cast<std::uint64_t>(flow)}) {
      key = mixed(key, part);
    }
    walk.walk(from, 1 / static_cast<double>(flows.count), key);
  }
  return walk.take();
}

}  // namespace stepcast
